/* Many samples in little time: a thread sends others the signal of samples, as their timers would. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_int flooded[64], flooded_count, signal_of_samples;
static atomic_long wanted;

/* The highest one that has a handler: the program sees it as one that has none. */
static int find_signal(void) {
    char line[256];
    unsigned long long caught = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "SigCgt: %llx", &caught);
    if (file) fclose(file);
    for (int number = SIGRTMAX; number >= SIGRTMIN; --number)
        if (caught >> (number - 1) & 1) return number;
    return 0;
}

static void *send_all(void *pause) {
    const struct timespec time = {0, (long)pause};
    unsigned turn = 0;
    prctl(PR_SET_TIMERSLACK, 1);
    while (atomic_load(&wanted) > 0) {
        const int count = atomic_load(&flooded_count);
        const int thread = count ? atomic_load(&flooded[turn++ % (unsigned)count]) : 0;
        siginfo_t info;
        memset(&info, 0, sizeof info);
        info.si_signo = atomic_load(&signal_of_samples);
        info.si_code = SI_TIMER;
        if (thread && syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, info.si_signo, &info) == 0)
            atomic_fetch_sub(&wanted, 1);
        if (time.tv_nsec) nanosleep(&time, NULL);
    }
    return NULL;
}

/* The calling thread gets some of them. */
void join_flood(void) { atomic_store(&flooded[atomic_fetch_add(&flooded_count, 1)], (int)syscall(SYS_gettid)); }
/* Begins; 0: nobody takes samples. */
int begin_flood(long samples, long pause_ns) {
    pthread_t made;
    atomic_store(&signal_of_samples, find_signal());
    atomic_store(&wanted, samples);
    if (!atomic_load(&signal_of_samples)) return 0;
    return pthread_create(&made, NULL, send_all, (void *)pause_ns) == 0;
}
long left_of_flood(void) { return atomic_load(&wanted); }
