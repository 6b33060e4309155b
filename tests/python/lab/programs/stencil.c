/* stencil ROUNDS BYTES: an 8 x 2 grid made with reorder true; in each round every process exchanges BYTES with each
 * neighbour. Rank 0 of the grid prints the rank in MPI_COMM_WORLD of each rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int rounds = argc > 1 ? atoi(argv[1]) : 1;
    const int bytes = argc > 2 ? atoi(argv[2]) : 1;
    const int extents[2] = {8, 2}, periodic[2] = {0, 0};
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, extents, periodic, 1, &grid);
    int world, rank, all[16];
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    MPI_Comm_rank(grid, &rank);
    MPI_Gather(&world, 1, MPI_INT, all, 1, MPI_INT, 0, grid);
    for (int r = 0; rank == 0 && r < 16; ++r) printf("%d%c", all[r], r == 15 ? '\n' : ' ');
    char *out = calloc((size_t)bytes, 1), *in = calloc((size_t)bytes, 1);
    for (int round = 0; round < rounds; ++round)
        for (int way = 0; way < 4; ++way) {
            int from, to;
            MPI_Cart_shift(grid, way / 2, way % 2 ? 1 : -1, &from, &to);
            MPI_Sendrecv(out, bytes, MPI_CHAR, to, way, in, bytes, MPI_CHAR, from, way, grid, MPI_STATUS_IGNORE);
        }
    free(out);
    free(in);
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
