/* What a sample takes: a stack of known depth sends itself the signal of samples, as a timer of its own would. A
 * program, or a library that Python calls (sample_cost.py). Prints one line: KIND least, median and mean nanoseconds,
 * of the signal and all that its handler does. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { most = 1 << 16, cold_bytes = 64 << 20 };
static double taken[most];
static int signal_of_samples, asked, is_cold, process, thread;
static char *evicted;

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void do_nothing(int signal) { (void)signal; }

/* The highest one that has a handler: the program sees it as one that has none. */
static int find_signal(void) {
    char line[256];
    unsigned long long caught = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "SigCgt: %llx", &caught);
    if (file) fclose(file);
    for (int number = SIGRTMAX; number >= SIGRTMIN; --number)
        if (caught >> (number - 1) & 1) return number;
    signal(SIGRTMAX, do_nothing); /* without the recorder */
    return SIGRTMAX;
}

static __attribute__((noinline)) void send(int i) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = signal_of_samples;
    info.si_code = SI_TIMER;
    if (is_cold)
        for (int at = 0; at < cold_bytes; at += 64) ++evicted[at];
    const double begin = now_ns();
    syscall(SYS_rt_tgsigqueueinfo, process, thread, signal_of_samples, &info);
    taken[i] = now_ns() - begin;
}

#define DOWN(name)                                               \
    static __attribute__((noinline)) int name(int left, int i) { \
        volatile int kept[4] = {left, i, 0, 0};                  \
        if (left == 0)                                           \
            send(i);                                             \
        else                                                     \
            name(left - 1, i);                                   \
        return kept[0] + kept[1];                                \
    }
DOWN(one_way)
DOWN(other_way)

/* `changing` of the innermost frames are others each time. */
static __attribute__((noinline)) int outer(int left, int changing) {
    volatile int kept[4] = {left, changing, 0, 0};
    if (left == 0)
        for (int i = 0; i < asked; ++i) (i % 2 ? other_way : one_way)(changing, i);
    else
        outer(left - 1, changing);
    return kept[0] + kept[1];
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void take_samples(const char *kind, int frames, int changing, int count, int cold) {
    signal_of_samples = find_signal();
    process = getpid();
    thread = (int)syscall(SYS_gettid);
    asked = count < most ? count : most;
    is_cold = cold;
    if (cold && !evicted) evicted = calloc(cold_bytes, 1);
    outer(frames - changing, changing);
    double sum = 0;
    for (int i = 0; i < asked; ++i) sum += taken[i];
    qsort(taken, asked, sizeof *taken, by_size);
    printf("%s %.0f %.0f %.0f\n", kind, taken[0], taken[asked / 2], sum / asked);
    fflush(stdout);
}

#if !defined(LIBRARY)
#include <mpi.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int frames = argc > 1 ? atoi(argv[1]) : 64, count = argc > 2 ? atoi(argv[2]) : 20000;
    take_samples("same", frames, 0, count, 0);
    take_samples("8-change", frames, 8, count, 0);
    take_samples("all-change", frames, frames, count, 0);
    take_samples("same-cold", frames, 0, count / 100, 1);
    take_samples("all-change-cold", frames, frames, count / 100, 1);
    MPI_Finalize();
    return 0;
}
#endif
