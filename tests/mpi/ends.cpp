// A few collectives, and then an end: one rank may have a setting of its own, and one may call MPI_Abort.
//
//     ends [--set NAME=VALUE] [--abort RANK]

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
    std::string set;
    int aborts = -1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::string(argv[i]) == "--set") set = argv[i + 1];
        if (std::string(argv[i]) == "--abort") aborts = std::atoi(argv[i + 1]);
    }
    // Before MPI_Init only the launcher tells which rank this is.
    for (const char* name : {"PMI_RANK", "OMPI_COMM_WORLD_RANK"})
        if (const char* rank = std::getenv(name); rank && std::string(rank) == "1" && !set.empty())
            setenv(set.substr(0, set.find('=')).c_str(), set.substr(set.find('=') + 1).c_str(), 1);
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < 20; ++turn) {
        int sum = 0;
        MPI_Allreduce(&turn, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == aborts) MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0) std::printf("right\n");
    return 0;
}
