/* Is busy for a second, in whose middle the clock is set (clocks.c); tells its time in barriers by CLOCK_MONOTONIC. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    double inside = 0, begin = now();
    void (*set)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "clock_is_set");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 100; ++i) {
        if (rank == 0) usleep(5000);
        if (i == 50 && set) set();
        const double before = now();
        MPI_Barrier(MPI_COMM_WORLD);
        inside += now() - before;
    }
    printf("rank %d: barriers %.6f of %.6f\n", rank, inside, now() - begin);
    MPI_Finalize();
    return 0;
}
