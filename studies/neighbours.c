/* Times of neighbourhood collectives, each call by several ways in turn, on a 27-point halo and on a random sparse
 * pattern. studies/neighbours.py runs it.
 *
 *     neighbours CALLS SIZE,SIZE,... WAY,WAY,... [the simulator's costs of messages]
 *
 * Ways: mpi, the MPI's own; palmette; combined and direct, palmette's when forced. One line of JSON for each pattern,
 * function, size and way: the slowest rank's time of each call, in seconds. Without palmette the last three are the
 * MPI's, too. A simulation has no neighbourhood collectives of its own: `mpi` is nonblocking messages there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_ways = 4, most_degree = 256 };

/* The edges of this rank. */
static int in, out, sources[most_degree * 8], targets[most_degree];

static void halo(int rank, int ranks) {
    int extents[3] = {0, 0, 0};
    MPI_Dims_create(ranks, 3, extents);
    const int z = rank % extents[2], y = rank / extents[2] % extents[1], x = rank / extents[2] / extents[1];
    in = out = 0;
    for (int d = 0; d < 27; ++d) {
        if (d == 13) continue;
        const int a = d / 9 - 1, b = d / 3 % 3 - 1, c = d % 3 - 1;
        const int to[3] = {(x + a + extents[0]) % extents[0], (y + b + extents[1]) % extents[1],
                           (z + c + extents[2]) % extents[2]};
        const int from[3] = {(x - a + extents[0]) % extents[0], (y - b + extents[1]) % extents[1],
                             (z - c + extents[2]) % extents[2]};
        targets[out++] = (to[0] * extents[1] + to[1]) * extents[2] + to[2];
        sources[in++] = (from[0] * extents[1] + from[1]) * extents[2] + from[2];
    }
}

/* Eight targets a rank, none twice, the same on every machine. */
static void sparse(int rank, int ranks) {
    in = out = 0;
    for (int r = 0; r < ranks; ++r) {
        unsigned state = 12345u + 7919u * (unsigned)r;
        int mine[8];
        for (int i = 0; i < 8 && i < ranks;) {
            state = state * 1664525u + 1013904223u;
            mine[i] = (int)(state >> 16) % ranks;
            int known = 0;
            for (int j = 0; j < i; ++j) known |= mine[j] == mine[i];
            if (known) continue;
            if (r == rank) targets[out++] = mine[i];
            if (mine[i] == rank) sources[in++] = r;
            ++i;
        }
    }
}

#ifdef PALMETTE_ABI_SMPI
#include "costs.h"

void study_neighbours(MPI_Comm comm, int sources_count, const int *sources, int targets_count, const int *targets);
int study_left(MPI_Comm comm, int alltoall, int bytes);
int palmette_force(const char *function, const char *spec);
static int force(const char *function, const char *spec) { return palmette_force(function, spec); }
enum { warm_up = 0 };

static MPI_Comm graph(void) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    study_neighbours(comm, in, sources, out, targets);
    return comm;
}

static void flat(int alltoall, char *input, char *result, int bytes, MPI_Comm comm) {
    static MPI_Request requests[most_degree * 9];
    for (int i = 0; i < in; ++i) MPI_Irecv(result + i * bytes, bytes, MPI_BYTE, sources[i], 0, comm, requests + i);
    for (int i = 0; i < out; ++i)
        MPI_Isend(input + (alltoall ? i * bytes : 0), bytes, MPI_BYTE, targets[i], 0, comm, requests + in + i);
    MPI_Waitall(in + out, requests, MPI_STATUSES_IGNORE);
}
#else
enum { warm_up = 2 };
static int study_left(MPI_Comm comm, int alltoall, int bytes) { return (void)comm, (void)alltoall, (void)bytes, 0; }

static int force(const char *function, const char *spec) {
    int (*const found)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_DEFAULT, "palmette_force");
    return found ? found(function, spec) : 0;
}

static MPI_Comm graph(void) {
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, MPI_UNWEIGHTED, out, targets, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    return comm;
}

static void flat(int alltoall, char *input, char *result, int bytes, MPI_Comm comm) {
    if (alltoall)
        PMPI_Neighbor_alltoall(input, bytes, MPI_BYTE, result, bytes, MPI_BYTE, comm);
    else
        PMPI_Neighbor_allgather(input, bytes, MPI_BYTE, result, bytes, MPI_BYTE, comm);
}
#endif

static double timed(const char *way, int alltoall, char *input, char *result, int bytes, MPI_Comm comm) {
    /* A simulation's MPI has no calls to leave to it. */
    const int left = strcmp(way, "mpi") == 0 || study_left(comm, alltoall, bytes);
    PMPI_Barrier(MPI_COMM_WORLD);
    PMPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (left)
        flat(alltoall, input, result, bytes, comm);
    else if (alltoall)
        MPI_Neighbor_alltoall(input, bytes, MPI_BYTE, result, bytes, MPI_BYTE, comm);
    else
        MPI_Neighbor_allgather(input, bytes, MPI_BYTE, result, bytes, MPI_BYTE, comm);
    double mine = MPI_Wtime() - begin, slowest = 0;
    PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* Which ways gave another result than the first. */
static int differs(const char *result, const char *first, size_t bytes) {
    int mine = memcmp(result, first, bytes) != 0, any = 0;
    PMPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return any;
}

__attribute__((visibility("default"))) int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, ways = 0, sizes[32], size_count = 0;
    char *way[most_ways];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
#ifdef PALMETTE_ABI_SMPI
    struct costs costs = {.eager_bytes = 0};
    struct end_cost *const ends[] = {&costs.send_inside, &costs.receive_inside, &costs.send_between,
                                     &costs.receive_between};
    if (argc != 9 || sscanf(argv[8], "%lu", &costs.eager_bytes) != 1) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < 4; ++i)
        if (sscanf(argv[4 + i], "%lf,%lf", &ends[i]->message_s, &ends[i]->byte_s) != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    charge(&costs);
#else
    if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
#endif
    const int calls = atoi(argv[1]);
    for (char *text = strtok(argv[2], ","); text && size_count < 32; text = strtok(NULL, ","))
        sizes[size_count++] = atoi(text);
    for (char *text = strtok(argv[3], ","); text && ways < most_ways; text = strtok(NULL, ",")) way[ways++] = text;
    double *times[most_ways];
    for (int w = 0; w < ways; ++w) times[w] = malloc(sizeof(double) * (size_t)calls);
    for (int pattern = 0; pattern < 2; ++pattern) {
        if (pattern == 0)
            halo(rank, ranks);
        else
            sparse(rank, ranks);
        MPI_Comm comm[most_ways];
        for (int w = 0; w < ways; ++w) {
            const char *spec = way[w][0] == 'c' || way[w][0] == 'd' ? way[w] : NULL;
            force("neighbor_alltoall", spec);
            force("neighbor_allgather", spec);
            comm[w] = graph();
            char *nothing = calloc((size_t)(in + out), 1);
            if (strcmp(way[w], "mpi") != 0) timed(way[w], 1, nothing, nothing + out, 1, comm[w]);
            free(nothing);
        }
        force("neighbor_alltoall", NULL);
        force("neighbor_allgather", NULL);
        for (int alltoall = 1; alltoall >= 0; --alltoall)
            for (int s = 0; s < size_count; ++s) {
                const size_t bytes = (size_t)sizes[s], got = (size_t)in * bytes;
                char *input = malloc((size_t)out * bytes + 1), *first = malloc(got + 1), *result = malloc(got + 1);
                for (size_t i = 0; i < (size_t)out * bytes; ++i) input[i] = (char)(i * 31 + (size_t)rank * 7 + 3);
                int wrong = 0;
                for (int call = -warm_up; call < calls; ++call)
                    for (int turn = 0; turn < ways; ++turn) {
                        const int w = (turn + call + warm_up) % ways;
                        memset(result, 0, got);
                        const double time = timed(way[w], alltoall, input, result, sizes[s], comm[w]);
                        if (call == -warm_up && turn == 0) memcpy(first, result, got);
                        if (call == -warm_up) wrong |= differs(result, first, got);
                        if (call >= 0) times[w][call] = time;
                    }
                if (wrong) {
                    if (rank == 0) fprintf(stderr, "neighbours: the ways' results differ\n");
                    MPI_Abort(MPI_COMM_WORLD, 1);
                }
                for (int w = 0; rank == 0 && w < ways; ++w) {
                    printf("{\"pattern\": \"%s\", \"function\": \"%s\", \"bytes\": %d, \"way\": \"%s\", \"seconds\": [",
                           pattern == 0 ? "halo" : "sparse", alltoall ? "alltoall" : "allgather", sizes[s], way[w]);
                    for (int call = 0; call < calls; ++call) printf("%s%.9g", call ? ", " : "", times[w][call]);
                    printf("]}\n");
                    fflush(stdout);
                }
                free(input);
                free(first);
                free(result);
            }
        for (int w = 0; w < ways; ++w) MPI_Comm_free(&comm[w]);
    }
    MPI_Finalize();
    return 0;
}
