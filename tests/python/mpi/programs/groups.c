/* A program that is linked with palmette: sums in each host, then of the hosts' leaders, and the same along a measured
 * ring. Rank 0 prints `right`. */
#include <palmette.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, all = 0, code = MPI_SUCCESS, of_host = 0, total = 0, number = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm host, leaders, ring, rack;
    code |= palmette_comm_split(MPI_COMM_WORLD, "node", 0, &host, &leaders);
    MPI_Reduce(&rank, &of_host, 1, MPI_INT, MPI_SUM, 0, host);
    if (leaders != MPI_COMM_NULL) MPI_Allreduce(&of_host, &total, 1, MPI_INT, MPI_SUM, leaders);
    MPI_Bcast(&total, 1, MPI_INT, 0, host);
    int wrong = code != MPI_SUCCESS || total != ranks * (ranks - 1) / 2;
    double *seconds = rank == 0 ? malloc(sizeof *seconds * (size_t)ranks * (size_t)ranks) : NULL;
    code |= palmette_distances(MPI_COMM_WORLD, 4096, seconds);
    code |= palmette_reorder(MPI_COMM_WORLD, "ring", seconds, &ring);
    MPI_Comm_rank(ring, &number);
    MPI_Allreduce(&number, &total, 1, MPI_INT, MPI_SUM, ring);
    wrong |= code != MPI_SUCCESS || total != ranks * (ranks - 1) / 2 || (rank == 0 && number != 0);
    /* Without a topology file nothing is known of racks. */
    wrong |= palmette_comm_split(MPI_COMM_WORLD, "rack", 0, &rack, NULL) != MPI_ERR_ARG || rack != MPI_COMM_NULL;
    if (leaders != MPI_COMM_NULL) MPI_Comm_free(&leaders);
    MPI_Comm_free(&host);
    MPI_Comm_free(&ring);
    free(seconds);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) puts(all ? "wrong" : "right");
    MPI_Finalize();
    return all != 0;
}
