/* Functions and lines whose shares of processor time are in their marks, in percent of the whole.
 *
 *     shares SECONDS */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

static volatile double sum;

static double spent(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

__attribute__((noinline)) static void smooth(double seconds) {
    for (const double end = spent() + seconds; spent() < end;)
        for (int i = 0; i < 20000; ++i) sum += i; /* smooth 10 */
}

__attribute__((noinline)) static void residual(double seconds) {
    for (const double end = spent() + seconds / 4; spent() < end;)
        for (int i = 0; i < 20000; ++i) sum += i; /* residual 15 */
    for (const double end = spent() + 3 * seconds / 4; spent() < end;)
        for (int i = 0; i < 20000; ++i) sum *= 0.5; /* residual 45 */
}

__attribute__((noinline)) static void restrict_to(double seconds) {
    for (const double end = spent() + seconds; spent() < end;)
        for (int i = 0; i < 20000; ++i) sum -= i; /* restrict_to 30 */
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const double seconds = argc > 1 ? atof(argv[1]) : 1;
    for (int step = 0; step < 20; ++step) {
        smooth(0.10 * seconds / 20);
        residual(0.60 * seconds / 20);
        restrict_to(0.30 * seconds / 20);
    }
    MPI_Finalize();
    return 0;
}
