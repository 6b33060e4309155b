// Sessions instead of MPI_Init: collectives on a communicator made from a process set, without a world, in several
// sessions one after the other; then, with --world, in MPI_Init's world with a session beside it. Every rank prints its
// closing line. Status 77 when the MPI has no sessions.
//
//     sessions [--sessions N] [--world 1] [--timeout SECONDS]

#include <mpi.h>

#include "support/outcome.hpp"
#include "support/simple.hpp"

using namespace test;

#ifdef MPI_SESSION_NULL

namespace {

void one_session(int number, Outcome& outcome) {
    std::snprintf(doing, sizeof doing, "session %d", number);
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_create_from_group(group, "palmette.test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &world_rank);
    exercise(comm, number, outcome, "a session's communicator");
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(comm, world_rank % 2, -world_rank, &half);
    exercise(half, number + 1, outcome, "half of a session's communicator");
    MPI_Comm_free(&half);
    exercise(comm, number + 2, outcome, "a session's communicator again");
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

}  // namespace

int main(int argc, char** argv) {
    watch(static_cast<unsigned>(option(argc, argv, "--timeout", 60)));
    Outcome outcome;
    const long sessions = option(argc, argv, "--sessions", 1);
    for (long s = 1; s <= sessions; ++s) one_session(static_cast<int>(s), outcome);
    if (option(argc, argv, "--world", 0) != 0) {
        MPI_Init(&argc, &argv);
        exercise(MPI_COMM_WORLD, 100, outcome, "the world after sessions");
        one_session(101, outcome);
        exercise(MPI_COMM_WORLD, 102, outcome, "the world after a session beside it");
        MPI_Finalize();
    }
    return outcome.close_alone();
}

#else

int main() {
    std::printf("this MPI has no sessions\n");
    return 77;
}

#endif
