// Ranks that pass what doesn't fit the others, under PALMETTE_CHECK=1: all ranks get the same error, nobody hangs, and
// collectives go on working. Rank 0 prints, for each mistake, which function and which words standard error must hold
// ("expect: ..."). Without the check these calls hang or give wrong data, so the program is run with it only. At least
// 4 ranks.
//
//     disagreements [--fatal 1] [--timeout SECONDS]
// With --fatal the first mistake meets MPI_ERRORS_ARE_FATAL: the program must end.

#include <mpi.h>

#include <functional>
#include <string>
#include <vector>

#include "support/outcome.hpp"
#include "support/simple.hpp"

using namespace test;

namespace {

struct Mistake {
    std::string function;
    std::string expected;  ///< of what standard error says
    int error_class;
    /// Does the call; `guilty` on the rank that does it wrong.
    std::function<int(bool guilty)> call;
    int guilty;
};

/// Memory enough for each of the calls.
struct Room {
    std::vector<int> send = std::vector<int>(4096, 1);
    std::vector<int> recv = std::vector<int>(4096, 2);
    std::vector<int> counts, other_counts, displs;
    std::vector<MPI_Datatype> types;
};

/// `other_counts` differ in what rank 3 gets or gives.
Room make_room(int size) {
    Room room;
    for (int r = 0; r < size; ++r) {
        room.counts.push_back(3);
        room.other_counts.push_back(r == 3 ? 5 : 3);
        room.displs.push_back(8 * r);
        room.types.push_back(MPI_INT);
    }
    return room;
}

std::vector<Mistake> rooted(MPI_Comm comm, Room& room) {
    int* const send = room.send.data();
    int* const recv = room.recv.data();
    return {
        {"MPI_Bcast", "rank 2 passes root 1", MPI_ERR_ROOT,
         [=](bool guilty) { return MPI_Bcast(recv, 3, MPI_INT, guilty ? 1 : 0, comm); }, 2},
        {"MPI_Bcast", "rank 3 passes a count of 8 bytes", MPI_ERR_COUNT,
         [=](bool guilty) { return MPI_Bcast(recv, guilty ? 2 : 3, MPI_INT, 1, comm); }, 3},
        {"MPI_Bcast", "rank 1 passes a count of -4", MPI_ERR_COUNT,
         [=](bool guilty) { return MPI_Bcast(recv, guilty ? -4 : 3, MPI_INT, 1, comm); }, 1},
        {"MPI_Reduce", "rank 0 passes root 3", MPI_ERR_ROOT,
         [=](bool guilty) { return MPI_Reduce(send, recv, 3, MPI_INT, MPI_SUM, guilty ? 3 : 2, comm); }, 0},
        {"MPI_Gather", "rank 2 passes a count of 20 bytes for rank 0", MPI_ERR_COUNT,
         [=](bool guilty) { return MPI_Gather(send, guilty ? 5 : 3, MPI_INT, recv, 3, MPI_INT, 0, comm); }, 2},
        {"MPI_Gather", "rank 1 passes root 77", MPI_ERR_ROOT,
         [=](bool guilty) { return MPI_Gather(send, 3, MPI_INT, recv, 3, MPI_INT, guilty ? 77 : 1, comm); }, 1},
        {"MPI_Gatherv", "rank 3 passes a count of 12 bytes for rank 1", MPI_ERR_COUNT,
         [=, &room](bool guilty) {
             const int* counts = (guilty ? room.other_counts : room.counts).data();
             return MPI_Gatherv(send, 3, MPI_INT, recv, counts, room.displs.data(), MPI_INT, 1, comm);
         },
         1},
        {"MPI_Scatter", "rank 0 passes a count of 12 bytes for rank 2", MPI_ERR_COUNT,
         [=](bool guilty) { return MPI_Scatter(send, 3, MPI_INT, recv, guilty ? 1 : 3, MPI_INT, 0, comm); }, 2},
        {"MPI_Scatterv", "rank 2 passes a count of 20 bytes for rank 3", MPI_ERR_COUNT,
         [=, &room](bool guilty) {
             const int* counts = (guilty ? room.other_counts : room.counts).data();
             return MPI_Scatterv(send, counts, room.displs.data(), MPI_INT, recv, 3, MPI_INT, 2, comm);
         },
         2},
    };
}

std::vector<Mistake> unrooted(MPI_Comm comm, Room& room) {
    int* const send = room.send.data();
    int* const recv = room.recv.data();
    return {
        {"MPI_Allgather", "rank 0 passes a count of 12 bytes for rank 1", MPI_ERR_COUNT,
         [=](bool guilty) {
             const int count = guilty ? 4 : 3;
             return MPI_Allgather(send, count, MPI_INT, recv, count, MPI_INT, comm);
         },
         1},
        {"MPI_Allgatherv", "rank 3 passes a count of 12 bytes for rank 2", MPI_ERR_COUNT,
         [=, &room](bool guilty) {
             const int* counts = (guilty ? room.other_counts : room.counts).data();
             return MPI_Allgatherv(send, 3, MPI_INT, recv, counts, room.displs.data(), MPI_INT, comm);
         },
         2},
        {"MPI_Alltoall", "rank 2 passes a count of 24 bytes for rank 0", MPI_ERR_COUNT,
         [=](bool guilty) { return MPI_Alltoall(send, 3, guilty ? MPI_DOUBLE : MPI_INT, recv, 3, MPI_INT, comm); }, 2},
        {"MPI_Alltoallv", "rank 1 passes a count of 20 bytes for rank 3", MPI_ERR_COUNT,
         [=, &room](bool guilty) {
             const int* counts = (guilty ? room.other_counts : room.counts).data();
             return MPI_Alltoallv(send, counts, room.displs.data(), MPI_INT, recv, room.counts.data(),
                                  room.displs.data(), MPI_INT, comm);
         },
         1},
        {"MPI_Alltoallw", "rank 3 passes a count of 12 bytes for rank 2", MPI_ERR_COUNT,
         [=, &room](bool guilty) {
             const int* counts = (guilty ? room.other_counts : room.counts).data();
             return MPI_Alltoallw(send, room.counts.data(), room.displs.data(), room.types.data(), recv, counts,
                                  room.displs.data(), room.types.data(), comm);
         },
         2},
        {"MPI_Allreduce", "rank 1 passes the operation MPI_MAX", MPI_ERR_OP,
         [=](bool guilty) { return MPI_Allreduce(send, recv, 3, MPI_INT, guilty ? MPI_MAX : MPI_SUM, comm); }, 1},
        {"MPI_Allreduce", "rank 2 passes a type of 8 bytes", MPI_ERR_TYPE,
         [=](bool guilty) { return MPI_Allreduce(send, recv, 3, guilty ? MPI_DOUBLE : MPI_INT, MPI_SUM, comm); }, 2},
        {"MPI_Allreduce", "rank 3 passes a count of 400 bytes", MPI_ERR_COUNT,
         [=](bool guilty) { return MPI_Allreduce(send, recv, guilty ? 100 : 3, MPI_INT, MPI_SUM, comm); }, 3},
        {"MPI_Reduce_scatter_block", "rank 2 passes a count of 8 bytes", MPI_ERR_COUNT,
         [=](bool guilty) { return MPI_Reduce_scatter_block(send, recv, guilty ? 2 : 3, MPI_INT, MPI_SUM, comm); }, 2},
        {"MPI_Reduce_scatter", "rank 1 passes a count of 20 bytes for rank 3", MPI_ERR_COUNT,
         [=, &room](bool guilty) {
             const int* counts = (guilty ? room.other_counts : room.counts).data();
             return MPI_Reduce_scatter(send, recv, counts, MPI_INT, MPI_SUM, comm);
         },
         1},
        {"MPI_Scan", "rank 0 passes a count of 28 bytes", MPI_ERR_COUNT,
         [=](bool guilty) { return MPI_Scan(send, recv, guilty ? 7 : 3, MPI_INT, MPI_SUM, comm); }, 0},
        {"MPI_Exscan", "rank 3 passes a count of 4 bytes", MPI_ERR_COUNT,
         [=](bool guilty) { return MPI_Exscan(send, recv, guilty ? 1 : 3, MPI_INT, MPI_SUM, comm); }, 3},
        {"a collective", "rank 2 reaches MPI_Bcast", MPI_ERR_OTHER,
         [=](bool guilty) { return guilty ? MPI_Bcast(recv, 3, MPI_INT, 0, comm) : MPI_Barrier(comm); }, 2},
    };
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const auto timeout_s = static_cast<unsigned>(option(argc, argv, "--timeout", 20));
    if (size < 4) {
        if (world_rank == 0) std::fprintf(stderr, "disagreements: %d ranks are too few, start it on 4 or more\n", size);
        MPI_Finalize();
        return 2;
    }
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(comm, "quarrel");
    const bool fatal = option(argc, argv, "--fatal", 0) != 0;
    MPI_Comm_set_errhandler(comm, fatal ? MPI_ERRORS_ARE_FATAL : MPI_ERRORS_RETURN);

    Room room = make_room(size);
    std::vector<Mistake> all = rooted(comm, room);
    for (Mistake& one : unrooted(comm, room)) all.push_back(std::move(one));
    Outcome outcome;
    for (const Mistake& mistake : all) {
        watch(timeout_s);
        std::snprintf(doing, sizeof doing, "%s where %s", mistake.function.c_str(), mistake.expected.c_str());
        if (world_rank == 0) {
            std::printf("expect: %s: %s\n", mistake.function.c_str(), mistake.expected.c_str());
            std::fflush(stdout);
        }
        const int code = mistake.call(world_rank == mistake.guilty);
        int error_class = MPI_SUCCESS;
        if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
        outcome.check(error_class == mistake.error_class, "%s: class %d instead of %d", doing, error_class,
                      mistake.error_class);
        exercise(comm, 3, outcome, "after a mistake");
    }
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return status;
}
