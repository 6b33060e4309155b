/* Allreduces on one node, in fresh buffers and in reused ones by turns: CALLS BYTES... Rank 0 prints for each size

       BYTES fresh|reused FAULTS SECONDS...

   FAULTS: minor page faults of all ranks in a call; seconds are those of the last rank from a common start. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* Spinning would keep a processor from the other rank where there is other load. */
static void until(double start) {
    const struct timespec at = {(time_t)start, (long)(1e9 * (start - (double)(time_t)start))};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static long faults(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_minflt;
}

/* As malloc gives long ones: new pages, without data. */
static double *pages(size_t bytes) {
    void *const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int calls = argc > 1 ? atoi(argv[1]) : 1;
    double *const seconds = calloc(2 * (size_t)calls, sizeof *seconds);
    for (int a = 2; a < argc; ++a) {
        const size_t bytes = (size_t)atol(argv[a]);
        const int count = (int)(bytes / sizeof(double));
        double *const from = pages(bytes), *const kept = pages(bytes);
        for (int i = 0; i < count; ++i) from[i] = i, kept[i] = 0;
        long taken[2] = {0, 0}, all[2];
        for (int call = -3; call < calls; ++call)
            for (int turn = 0; turn < 2; ++turn) {
                const int fresh = (turn + call) & 1;
                double *const to = fresh ? pages(bytes) : kept;
                double start = now() + 5e-4, took, longest;
                MPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
                until(start);
                const long before = faults();
                MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
                took = now() - start;
                if (call >= 0) taken[fresh] += faults() - before;
                MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
                if (rank == 0 && call >= 0) seconds[2 * call + fresh] = longest;
                if (fresh) munmap(to, bytes);
            }
        MPI_Reduce(taken, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        for (int fresh = 0; rank == 0 && fresh < 2; ++fresh) {
            printf("%zu %s %.1f", bytes, fresh ? "fresh" : "reused", (double)all[fresh] / calls);
            for (int call = 0; call < calls; ++call) printf(" %.9f", seconds[2 * call + fresh]);
            printf("\n");
        }
        munmap(from, bytes);
        munmap(kept, bytes);
    }
    free(seconds);
    MPI_Finalize();
    return 0;
}
