/* Ranks that are late, each for a reason that stands on a line marked with the scenario's name.
 *
 *     culprits SCENARIO MILLISECONDS
 *
 * Rank 1 of all is late in each step (in `phases` rank 0 in the second half); all ranks compute a fifth of that
 * besides, so that the machine's load is seen on all of them. Work is measured in processor time: on a busy machine it
 * takes longer and is the same. */
#define _GNU_SOURCE
#include <mpi.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

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

/* Another thread computes while it holds what this one waits for. */
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) static void *holds_lock(void *argument) {
    struct part *part = argument;
    pthread_mutex_lock(&held);
    pthread_barrier_wait((pthread_barrier_t *)(part + 1));
    for (const double end = spent() + part->milliseconds; spent() < end;)
        for (int i = 0; i < CELLS; ++i) part->sum += field[i] * i; /* convoy */
    pthread_mutex_unlock(&held);
    return NULL;
}
__attribute__((noinline)) static double waits_for_lock(double milliseconds) {
    struct {
        struct part part;
        pthread_barrier_t begun;
    } given = {{milliseconds, 0}, {{0}}};
    pthread_t thread;
    pthread_barrier_init(&given.begun, NULL, 2);
    if (pthread_create(&thread, NULL, holds_lock, &given)) abort();
    pthread_barrier_wait(&given.begun);
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    pthread_join(thread, NULL);
    return given.part.sum;
}

static int by_slow_order(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    double sum = 0;
    for (int i = 1; i < 50; ++i) sum += sqrt(fabs(x) + i) - sqrt(fabs(y) + i); /* comparator */
    return (sum > 0) - (sum < 0);
}
__attribute__((noinline)) static void sort_slowly(double milliseconds) {
    double copy[512];
    for (const double end = spent() + milliseconds; spent() < end;) {
        for (int i = 0; i < 512; ++i) copy[i] = (i * 7919) % 512;
        qsort(copy, 512, sizeof *copy, by_slow_order);
    }
}

static inline __attribute__((always_inline)) double inlined_part(double value) {
    for (int i = 0; i < 64; ++i) value = value * 0.999 + sqrt(value + i); /* inlined */
    return value;
}
__attribute__((noinline)) static double with_inlined(double milliseconds) {
    double sum = 0;
    for (const double end = spent() + milliseconds; spent() < end;)
        for (int i = 0; i < CELLS; i += 64) sum += inlined_part(field[i]);
    return sum;
}

static double cheap(double value) { return value + 1; }
static double dear(double value) {
    for (int i = 0; i < 2000; ++i) value = value * 0.5 + i; /* dispatch */
    return value;
}
static double (*volatile const kinds[])(double) = {cheap, dear, cheap, cheap};
__attribute__((noinline)) static double dispatch(double milliseconds) {
    double sum = 0;
    for (const double end = spent() + milliseconds; spent() < end;)
        for (int i = 0; i < 64; ++i) sum += kinds[i % 4](sum);
    return sum;
}

/* Each load waits for the one before, and none is in a cache. */
__attribute__((noinline)) static double chase(double milliseconds) {
    enum { LINKS = 1 << 21 };
    static unsigned *next;
    if (!next) {
        next = malloc(LINKS * sizeof *next);
        for (unsigned i = 0; i < LINKS; ++i) next[i] = (i * 1664525U + 1013904223U) % LINKS;
    }
    unsigned at = 0;
    for (const double end = spent() + milliseconds; spent() < end;)
        for (int i = 0; i < 20000; ++i) at = next[at]; /* memory */
    return at;
}

__attribute__((noinline)) static void ask_kernel(double milliseconds) {
    char bytes[1 << 16];
    const int file = open("/dev/zero", O_RDONLY);
    for (const double end = spent() + milliseconds; spent() < end;)
        for (int i = 0; i < 10; ++i)
            if (read(file, bytes, sizeof bytes) < 0) abort(); /* kernel */
    close(file);
}

/* The disk takes as long as it takes; a pause stands for one that is slow. */
__attribute__((noinline)) static void write_checkpoint(double milliseconds) {
    const struct timespec pause = {0, (long)(milliseconds * 1e6)};
    char name[] = "checkpoint-XXXXXX";
    MPI_Send(field, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    const int file = mkstemp(name);
    if (write(file, field, sizeof field) < 0 || fsync(file) < 0) abort(); /* disk */
    nanosleep(&pause, NULL);
    MPI_Send(field, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    close(file);
    unlink(name);
}

__attribute__((noinline)) static double read_input(double milliseconds) {
    double sum = 0;
    for (const double end = spent() + milliseconds; spent() < end;)
        for (int i = 0; i < CELLS; ++i) sum += field[i] / (i + 1); /* serial */
    return sum;
}

/* Another thread is bound to the same processor and takes half of it. */
static volatile int goes_on;
static void *rival(void *nothing) {
    while (goes_on) continue;
    return nothing;
}
__attribute__((noinline)) static double share_processor(double milliseconds) {
    cpu_set_t before, one;
    pthread_t thread;
    pthread_getaffinity_np(pthread_self(), sizeof before, &before);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one); /* which the other one inherits */
    goes_on = 1;
    if (pthread_create(&thread, NULL, rival, NULL)) abort();
    const double sum = relax(milliseconds);
    goes_on = 0;
    pthread_join(thread, NULL);
    pthread_setaffinity_np(pthread_self(), sizeof before, &before);
    return sum;
}

static double step(const char *scenario, int rank, int number, double milliseconds) {
    if (!strcmp(scenario, "serial")) return rank == 1 ? read_input(milliseconds) : 0;
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
    if (!strcmp(scenario, "convoy")) sum += waits_for_lock(milliseconds);
    if (!strcmp(scenario, "comparator")) sort_slowly(milliseconds);
    if (!strcmp(scenario, "inlined")) sum += with_inlined(milliseconds);
    if (!strcmp(scenario, "dispatch")) sum += dispatch(milliseconds);
    if (!strcmp(scenario, "memory")) sum += chase(milliseconds);
    if (!strcmp(scenario, "kernel")) ask_kernel(milliseconds);
    if (!strcmp(scenario, "disk")) write_checkpoint(milliseconds);
    if (!strcmp(scenario, "shared")) sum += share_processor(milliseconds);
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
