/* Times of neighbourhood collectives, the library's next to the MPI's own in turn, on a 27-point halo and on a random
 * sparse pattern. Run it under `palmette run`, as docs/results say.
 *
 *     neighbours [TIMED_CALLS [MOST_BYTES]]
 *
 * One line for each pattern, function and size: the medians, over calls, of the slowest rank's time. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static MPI_Comm halo(int rank, int ranks) {
    int extents[3] = {0, 0, 0}, sources[26], targets[26], degree = 0;
    MPI_Dims_create(ranks, 3, extents);
    const int z = rank % extents[2], y = rank / extents[2] % extents[1], x = rank / extents[2] / extents[1];
    for (int d = 0; d < 27; ++d) {
        if (d == 13) continue;
        const int a = d / 9 - 1, b = d / 3 % 3 - 1, c = d % 3 - 1;
        const int to[3] = {(x + a + extents[0]) % extents[0], (y + b + extents[1]) % extents[1],
                           (z + c + extents[2]) % extents[2]};
        const int from[3] = {(x - a + extents[0]) % extents[0], (y - b + extents[1]) % extents[1],
                             (z - c + extents[2]) % extents[2]};
        targets[degree] = (to[0] * extents[1] + to[1]) * extents[2] + to[2];
        sources[degree++] = (from[0] * extents[1] + from[1]) * extents[2] + from[2];
    }
    MPI_Comm out;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, sources, MPI_UNWEIGHTED, degree, targets, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &out);
    return out;
}

/* Eight targets a rank, the same on every machine. */
static MPI_Comm sparse(int rank, int ranks) {
    int targets[8], in = 0;
    int *sources = malloc(sizeof(int) * 8 * (size_t)ranks);
    for (int r = 0; r < ranks; ++r) {
        unsigned state = 12345u + 7919u * (unsigned)r;
        for (int i = 0; i < 8; ++i) {
            state = state * 1664525u + 1013904223u;
            const int target = (int)(state >> 16) % ranks;
            if (r == rank) targets[i] = target;
            if (target == rank) sources[in++] = r;
        }
    }
    MPI_Comm out;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, MPI_UNWEIGHTED, 8, targets, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &out);
    free(sources);
    return out;
}

static double timed(int own, int alltoall, char *in, char *out, int bytes, MPI_Comm comm) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (alltoall && own)
        MPI_Neighbor_alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, comm);
    else if (alltoall)
        PMPI_Neighbor_alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, comm);
    else if (own)
        MPI_Neighbor_allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, comm);
    else
        PMPI_Neighbor_allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, comm);
    double mine = MPI_Wtime() - begin, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

int main(int argc, char **argv) {
    static const int sizes[] = {8, 64, 256, 1024, 4096, 16384, 65536};
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int calls = argc > 1 ? atoi(argv[1]) : 15;
    const int most_bytes = argc > 2 ? atoi(argv[2]) : 65536;
    double *times[2] = {malloc(sizeof(double) * (size_t)calls), malloc(sizeof(double) * (size_t)calls)};
    for (int pattern = 0; pattern < 2; ++pattern) {
        MPI_Comm comm = pattern == 0 ? halo(rank, ranks) : sparse(rank, ranks);
        int in = 0, out = 0, weighted = 0;
        MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
        for (int alltoall = 1; alltoall >= 0; --alltoall)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes && sizes[s] <= most_bytes; ++s) {
                const int bytes = sizes[s];
                char *input = calloc((size_t)out + 1, (size_t)bytes);
                char *result = calloc((size_t)in + 1, (size_t)bytes);
                for (int call = -2; call < calls; ++call)
                    for (int own = 0; own < 2; ++own) {
                        const double time = timed(own, alltoall, input, result, bytes, comm);
                        if (call >= 0) times[own][call] = time;
                    }
                if (rank == 0) {
                    const double mpi = median(times[0], calls), own = median(times[1], calls);
                    printf("%-6s neighbor_%-9s %6d B  mpi %9.1f us  palmette %9.1f us  mpi/palmette %.2f\n",
                           pattern == 0 ? "halo" : "sparse", alltoall ? "alltoall" : "allgather", bytes, mpi * 1e6,
                           own * 1e6, mpi / own);
                    fflush(stdout);
                }
                free(input);
                free(result);
            }
        MPI_Comm_free(&comm);
    }
    MPI_Finalize();
    return 0;
}
