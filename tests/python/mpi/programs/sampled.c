/* What samples are tried on: each mode spends CPU time in known places, or waits, or makes it hard to be looked at. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static double clock_s(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

__attribute__((noinline)) double turn(long times) {
    volatile double x = 1;
    for (long i = 0; i < times; ++i) x = x * 1.0000001 + 1e-9;
    return x;
}
/* Of the thread's CPU time. */
#define SPENDS(name)                                                     \
    __attribute__((noinline)) double name(double seconds) {              \
        double x = 0, end = clock_s(CLOCK_THREAD_CPUTIME_ID) + seconds;  \
        while (clock_s(CLOCK_THREAD_CPUTIME_ID) < end) x += turn(20000); \
        return x;                                                        \
    }
SPENDS(quarter)
SPENDS(half)
SPENDS(of_thread)
SPENDS(at_bottom)
SPENDS(on_other_stack)
SPENDS(of_child)

__attribute__((noinline)) double shares(double seconds) {
    double x = 0;
    for (int i = 0; i < 20; ++i) x += quarter(seconds / 80) + half(seconds / 40) + 2 * quarter(seconds / 80);
    return x;
}

/* As MPI libraries do that poll with a time limit. */
__attribute__((noinline)) double of_clocks(double seconds) {
    double x = 0, end = clock_s(CLOCK_THREAD_CPUTIME_ID) + seconds;
    while (clock_s(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 1000; ++i) x += clock_s(CLOCK_MONOTONIC);
    return x;
}

static void *thread_of_work(void *seconds) { return of_thread(*(double *)seconds) > 0 ? NULL : seconds; }
/* 20 at a time, which come and go. */
static void threads(double seconds) {
    pthread_t made[20];
    double each = seconds / 100;
    for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < 20; ++i) pthread_create(&made[i], NULL, thread_of_work, &each);
        for (int i = 0; i < 20; ++i) pthread_join(made[i], NULL);
    }
}

__attribute__((noinline)) double deeper(long levels, double seconds) {
    if (levels == 0) return at_bottom(seconds);
    const double x = deeper(levels - 1, seconds);
    __asm__ volatile("" ::: "memory");
    return x + 1;
}

/* Everything that signals interrupt, though a handler asks for it to go on. */
static int waits(double seconds) {
    int interrupted = 0;
    const int set = epoll_create1(0);
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    const double end = clock_s(CLOCK_MONOTONIC) + seconds;
    while (clock_s(CLOCK_MONOTONIC) < end) {
        struct epoll_event event;
        struct timeval until = {0, 500};
        struct timespec pause = {0, 300000}, late;
        errno = 0;
        interrupted += poll(NULL, 0, 1) < 0 && errno == EINTR;
        interrupted += select(0, NULL, NULL, NULL, &until) < 0 && errno == EINTR;
        interrupted += epoll_wait(set, &event, 1, 1) < 0 && errno == EINTR;
        interrupted += nanosleep(&pause, NULL) < 0 && errno == EINTR;
        interrupted += usleep(200) < 0 && errno == EINTR;
        clock_gettime(CLOCK_REALTIME, &late);
        late.tv_nsec += 200000;
        if (late.tv_nsec >= 1000000000) late.tv_nsec -= 1000000000, ++late.tv_sec;
        interrupted += sem_timedwait(&semaphore, &late) < 0 && errno == EINTR;
        turn(20000);
    }
    return interrupted;
}

static void forks(double seconds) {
    const pid_t child = fork();
    if (child == 0) {
        double each = seconds / 2;
        pthread_t made;
        of_child(each);
        pthread_create(&made, NULL, thread_of_work, &each);
        pthread_join(made, NULL);
        _exit(7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    half(seconds);
}

static ucontext_t here, there;
static double of_other_stack;
static void other_stack(void) { on_other_stack(of_other_stack); }
static void stacks(double seconds) {
    const size_t bytes = 1 << 16;
    of_other_stack = seconds;
    getcontext(&there);
    there.uc_stack.ss_sp = malloc(bytes);
    there.uc_stack.ss_size = bytes;
    there.uc_link = &here;
    makecontext(&there, other_stack, 0);
    swapcontext(&here, &there);
}

static volatile sig_atomic_t own_signals;
static void own_handler(int signal) {
    (void)signal;
    ++own_signals;
}
/* Takes each real-time signal for itself while it is sampled. */
static void signals(double seconds) {
    int sent = 0, free_before = 0;
    for (int number = SIGRTMAX; number > SIGRTMAX - 5; --number) {
        struct sigaction action, before;
        memset(&action, 0, sizeof action);
        action.sa_handler = own_handler;
        sigaction(number, NULL, &before);
        free_before += before.sa_handler == SIG_DFL;
        if (number % 2)
            signal(number, own_handler);
        else
            sigaction(number, &action, NULL);
        half(seconds / 10);
        raise(number), ++sent;
        half(seconds / 10);
    }
    printf("free %d sent %d got %d\n", free_before, sent, (int)own_signals);
}

static void plugins(const char *first, const char *second, double seconds) {
    const char *names[] = {first, second};
    void *bases[2];
    for (int i = 0; i < 2; ++i) {
        void *handle = dlopen(names[i], RTLD_NOW);
        double (*work)(double) = (double (*)(double))dlsym(handle, "plugged_in");
        bases[i] = (void *)work;
        work(seconds / 2);
        dlclose(handle);
    }
    printf("same %d\n", bases[0] == bases[1]);
}

static volatile sig_atomic_t trapped;
static void on_trap(int number) { trapped += number == SIGTRAP; }
/* A debugger's signal that the program takes for itself. */
static void traps(double seconds) {
    struct sigaction mine, before;
    memset(&mine, 0, sizeof mine);
    mine.sa_handler = on_trap;
    quarter(seconds / 2);
    sigaction(SIGTRAP, &mine, &before);
    printf("free %d ", before.sa_handler == SIG_DFL);
    for (int i = 0; i < 3; ++i) raise(SIGTRAP);
    half(seconds / 2);
    printf("got %d\n", (int)trapped);
}

/* Whose functions are looked up at their first calls. */
__attribute__((noinline)) static void lazy(const char *name, double seconds) {
    void *handle = dlopen(name, RTLD_LAZY);
    double (*work)(double) = (double (*)(double))dlsym(handle, "plugged_in");
    work(seconds);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    const char *mode = words[1];
    const double seconds = atof(words[2]);
    if (!strcmp(mode, "shares")) shares(seconds);
    if (!strcmp(mode, "clocks")) printf("%g\n", of_clocks(seconds));
    if (!strcmp(mode, "threads")) threads(seconds);
    if (!strcmp(mode, "deep")) deeper(atol(words[3]), seconds);
    if (!strcmp(mode, "waits")) printf("interrupted %d\n", waits(seconds));
    if (!strcmp(mode, "forks")) forks(seconds);
    if (!strcmp(mode, "stacks")) stacks(seconds);
    if (!strcmp(mode, "signals")) signals(seconds);
    if (!strcmp(mode, "plugins")) plugins(words[3], words[4], seconds);
    if (!strcmp(mode, "traps")) traps(seconds);
    if (!strcmp(mode, "trap")) {
        raise(SIGTRAP);
        printf("went on\n");
    }
    if (!strcmp(mode, "lazy")) lazy(words[3], seconds);
    if (!strcmp(mode, "hangs"))
        for (;;) half(seconds);
    MPI_Finalize();
    return 0;
}
