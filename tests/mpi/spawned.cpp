// Collectives on a communicator in which two jobs meet: the first one's ranks spawn one rank more.
//
//     spawned

#include <mpi.h>

#include "support/outcome.hpp"
#include "support/simple.hpp"

using namespace test;

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    watch(60);
    Outcome outcome;
    MPI_Comm between = MPI_COMM_NULL;
    MPI_Comm_get_parent(&between);
    const bool is_child = between != MPI_COMM_NULL;
    if (!is_child)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
    exercise(MPI_COMM_WORLD, 1, outcome, "a job's own world");
    MPI_Comm merged = MPI_COMM_NULL;
    MPI_Intercomm_merge(between, is_child ? 1 : 0, &merged);
    exercise(merged, 2, outcome, "two jobs merged");
    const int status = outcome.close(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&between);
    MPI_Finalize();
    return status;
}
