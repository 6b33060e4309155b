/* A host that opens the MPI's library by itself, and looks its functions up there. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *mpi = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : 0;
    if (!mpi) return fprintf(stderr, "%s\n", dlerror()), 3;
    int (*init)(int *, char ***) = (int (*)(int *, char ***))dlsym(mpi, "MPI_Init");
    int (*finalize)(void) = (int (*)(void))dlsym(mpi, "MPI_Finalize");
    int (*rank_of)(MPI_Comm, int *) = (int (*)(MPI_Comm, int *))dlsym(mpi, "MPI_Comm_rank");
    int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm) =
        (int (*)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm))dlsym(mpi, "MPI_Allreduce");
#ifdef OPEN_MPI
    MPI_Comm world = (MPI_Comm)dlsym(mpi, "ompi_mpi_comm_world");
    MPI_Datatype type = (MPI_Datatype)dlsym(mpi, "ompi_mpi_int");
    MPI_Op op = (MPI_Op)dlsym(mpi, "ompi_mpi_op_max");
#else
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype type = MPI_INT;
    MPI_Op op = MPI_MAX;
#endif
    if (init(0, 0)) return 5;
    int rank, wrong = 0;
    rank_of(world, &rank);
    for (int i = 0; i < 100; ++i) {
        int mine = i - rank, most = -1;
        allreduce(&mine, &most, 1, type, op, world);
        wrong += most != i;
    }
    if (rank == 0) printf("100 cases, %d wrong\n", wrong);
    finalize();
    return wrong != 0;
}
