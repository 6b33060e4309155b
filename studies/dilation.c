/* Processor time of functions that take some nanoseconds, and of some that take a microsecond: dilation CALLS. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((no_instrument_function)) static double cpu_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

__attribute__((noinline)) static long fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__attribute__((noinline)) static double relaxed(double value) {
    for (int i = 0; i < 250; ++i) value = value * 0.999 + 0.001;
    return value;
}

int main(int argc, char **argv) {
    const long calls = argc > 1 ? atol(argv[1]) : 200000;
    volatile double kept = 0;
    volatile int depth = 25; /* nothing of it may be computed before its time */
    MPI_Init(&argc, &argv);
    double begin = cpu_s();
    kept += (double)fibonacci(depth);
    printf("nanoseconds %.6f\n", cpu_s() - begin);
    begin = cpu_s();
    for (long i = 0; i < calls; ++i) kept += relaxed(kept);
    printf("microsecond %.6f\n", cpu_s() - begin);
    MPI_Finalize();
    return 0;
}
