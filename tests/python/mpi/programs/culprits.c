/* Ranks that are late, each for a reason that stands on a line marked with the scenario's name.
 *
 *     culprits SCENARIO MILLISECONDS
 *
 * Rank 1 of all is late in each step (in `phases` rank 0 in the second half); all ranks compute a fifth of that
 * besides, so that the machine's load is seen on all of them. Work is measured in processor time: on a busy machine it
 * takes longer and is the same. */
#include <mpi.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { CELLS = 4096, STEPS = 20, PAGES = 256, PAGE = 4096 };

static double field[CELLS];

static double spent(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
}

__attribute__((noinline)) static double relax(double milliseconds) {
    double change = 0;
    for (const double end = spent() + milliseconds; spent() < end;)
        for (int i = 1; i < CELLS - 1; ++i) {
            const double next = 0.5 * field[i] + 0.25 * (field[i - 1] + field[i + 1]);
            change += fabs(next - field[i]);
            field[i] = next; /* uneven */
        }
    return change;
}

__attribute__((noinline)) static double legacy_filter(double milliseconds) {
    double sum = 0;
    for (const double end = spent() + milliseconds; spent() < end;)
        for (int i = 0; i < CELLS; ++i) sum += pow(fabs(field[i]) + 1, 1.37 + i * 1e-7); /* line */
    return sum;
}

__attribute__((noinline)) static void touch(double milliseconds) {
    for (const double end = spent() + milliseconds; spent() < end;) {
        char *memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int i = 0; i < PAGES; ++i) memory[(size_t)i * PAGE] = 1; /* faults */
        munmap(memory, (size_t)PAGES * PAGE);                         /* faults */
    }
}

__attribute__((noinline)) static void write_results(double milliseconds) {
    const struct timespec pause = {0, (long)(milliseconds * 1e6)};
    MPI_Send(field, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    nanosleep(&pause, NULL); /* stall */
    MPI_Send(field, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
}

__attribute__((noinline)) static double descend(int depth, double milliseconds) {
    if (depth > 0) return 1 + descend(depth - 1, milliseconds);
    double sum = 0;
    for (const double end = spent() + milliseconds; spent() < end;)
        for (int i = 0; i < CELLS; ++i) sum += field[i] * i; /* recursion */
    return sum;
}

struct part {
    double milliseconds, sum;
};
__attribute__((noinline)) static void *in_a_thread(void *argument) {
    struct part *part = argument;
    for (const double end = spent() + part->milliseconds; spent() < end;)
        for (int i = 0; i < CELLS; ++i) part->sum += field[i] * i; /* thread */
    return NULL;
}
static double by_a_thread(double milliseconds) {
    struct part part = {milliseconds, 0};
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_a_thread, &part)) abort();
    pthread_join(thread, NULL);
    return part.sum;
}

static double step(const char *scenario, int rank, int number, double milliseconds) {
    double sum = relax(milliseconds / 5);
    const int is_second = number >= STEPS / 2;
    if (!strcmp(scenario, "phases")) {
        if (rank == 1 && !is_second) sum += legacy_filter(milliseconds);
        if (rank == 0 && is_second) sum += descend(3, milliseconds);
    }
    if (rank != 1) return sum;
    if (!strcmp(scenario, "uneven")) sum += relax(milliseconds);
    if (!strcmp(scenario, "line")) sum += legacy_filter(milliseconds);
    if (!strcmp(scenario, "faults")) touch(milliseconds);
    if (!strcmp(scenario, "stall")) write_results(milliseconds);
    if (!strcmp(scenario, "recursion")) sum += descend(150, milliseconds);
    if (!strcmp(scenario, "thread")) sum += by_a_thread(milliseconds);
    return sum;
}

int main(int argc, char **argv) {
    int rank, given;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < CELLS; ++i) field[i] = i % 17;
    for (int number = 0; number < STEPS; ++number) {
        const double own = step(argv[1], rank, number, atof(argv[2]));
        double all;
        MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
