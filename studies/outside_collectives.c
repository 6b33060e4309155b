/* Time of MPI operations other than collectives on the slowest rank; for studies/outside_collectives.py.
 *
 *     outside_collectives communicators|duplicates|types|broadcasts|calls COUNT     prints microseconds per operation
 *     outside_collectives start                                          MPI_Init and MPI_Finalize only
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void one(const char *what, int i) {
    MPI_Comm comm;
    MPI_Datatype type;
    int mine = i, sum = 0;
    if (!strcmp(what, "communicators")) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
        MPI_Comm_free(&comm);
    } else if (!strcmp(what, "duplicates")) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_free(&comm);
    } else if (!strcmp(what, "types")) {
        MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &type);
        MPI_Type_commit(&type);
        MPI_Type_free(&type);
    } else if (!strcmp(what, "broadcasts")) {
        static double data[30];
        MPI_Type_contiguous(3, MPI_DOUBLE, &type);
        MPI_Type_commit(&type);
        MPI_Bcast(data, 10, type, 0, MPI_COMM_WORLD);
        MPI_Type_free(&type);
    } else {
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int count = argc > 2 ? atoi(argv[2]) : 0, rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < count / 10; ++i) one(argv[1], i);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = -MPI_Wtime(), longest = 0;
    for (int i = 0; i < count; ++i) one(argv[1], i);
    seconds += MPI_Wtime();
    MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0 && count > 0) printf("%.6f\n", longest / count * 1e6);
    MPI_Finalize();
    return 0;
}
