/* Regions in ways that programs have them, by the first argument. What it counts itself it prints. */
#include <palmette.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void spin(double for_s) {
    const double end = seconds() + for_s;
    while (seconds() < end) continue;
}

/* Returns the time between begin and end, which the region's is at least. */
static double times(long count, const char *outer, const char *inner) {
    palmette_region_begin(outer);
    const double begin = seconds();
    for (long i = 0; i < count; ++i) {
        palmette_region_begin(inner);
        palmette_region_end(inner);
    }
    const double inside = seconds() - begin;
    palmette_region_end(outer);
    return inside;
}

/* Time inside of and around regions, by the program's own clock: theirs lies in between. */
static void nested(void) {
    int rank = 0, sum = 0, one = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double step_s[2] = {0, 0}, solve_s[2] = {0, 0};
    for (int step = 0; step < 3; ++step) {
        step_s[1] -= seconds();
        palmette_region_begin("step");
        step_s[0] -= seconds();
        spin(0.02);
        for (int i = 0; i < 2; ++i) {
            solve_s[1] -= seconds();
            palmette_region_begin("solve");
            solve_s[0] -= seconds();
            spin(0.02 * (rank + 1));
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            solve_s[0] += seconds();
            palmette_region_end("solve");
            solve_s[1] += seconds();
        }
        step_s[0] += seconds();
        palmette_region_end("step");
        step_s[1] += seconds();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d step %.9f %.9f solve %.9f %.9f\n", rank, step_s[0], step_s[1], solve_s[0], solve_s[1]);
}

static long recursive(int depth) {
    palmette_region_begin("recursive");
    const long calls = depth == 0 ? 1 : 1 + recursive(depth - 1) + recursive(depth - 1);
    if (depth == 0) spin(0.001);
    palmette_region_end("recursive");
    return calls;
}

/* More nested ones than there are places for, all of which must be counted. */
static void deep(void) {
    char name[32];
    for (int i = 0; i < 70000; ++i) {
        snprintf(name, sizeof name, "level %d", i);
        palmette_region_begin(name);
    }
    for (int i = 70000; i-- > 0;) {
        snprintf(name, sizeof name, "level %d", i);
        if (palmette_region_end(name) != MPI_SUCCESS) printf("no end of %s\n", name);
    }
    palmette_region_begin("after");
    palmette_region_end("after");
}

static void *in_thread(void *argument) {
    times((long)argument, "of a thread", "inner");
    return NULL;
}

static void threads(int rounds, int at_a_time, long count) {
    for (int round = 0; round < rounds; ++round) {
        pthread_t made[16];
        for (int i = 0; i < at_a_time; ++i) pthread_create(&made[i], NULL, in_thread, (void *)count);
        times(count, "of the first", "inner");
        for (int i = 0; i < at_a_time; ++i) pthread_join(made[i], NULL);
    }
}

static void *ends_anothers(void *unused) {
    (void)unused;
    printf("another thread's: %s\n", palmette_region_end("of the first") == MPI_ERR_ARG ? "refused" : "taken");
    palmette_region_begin("left in a thread");
    return NULL;
}

static void mistakes(void) {
    printf("no name: %s\n", palmette_region_begin(NULL) == MPI_ERR_ARG ? "refused" : "taken");
    printf("empty: %s\n", palmette_region_begin("") == MPI_ERR_ARG ? "refused" : "taken");
    printf("not begun: %s\n", palmette_region_end("never") == MPI_ERR_ARG ? "refused" : "taken");
    palmette_region_begin("outer");
    palmette_region_begin("forgotten");
    printf("outer: %s\n", palmette_region_end("outer") == MPI_SUCCESS ? "taken" : "refused");
    palmette_region_begin("of the first");
    pthread_t other;
    pthread_create(&other, NULL, ends_anothers, NULL);
    pthread_join(other, NULL);
    palmette_region_end(NULL);
    /* One buffer, two names. */
    char name[16] = "a";
    palmette_region_begin(name);
    palmette_region_end(name);
    strcpy(name, "b");
    palmette_region_begin(name);
    palmette_region_end("b");
    palmette_region_begin("open at the end");
}

static void handler(int signal) {
    (void)signal;
    palmette_region_begin("in a handler");
    palmette_region_end("in a handler");
}

static void interrupted(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(SIGALRM, &action, NULL);
    ualarm(200, 200);
    const double end = seconds() + 0.3;
    long count = 0;
    for (; seconds() < end; ++count) times(10, "outer", "inner");
    ualarm(0, 0);
    printf("outer %ld\n", count);
}

/* Two phases that differ: sums, then barriers, with what they are for told between them. */
static void phases(double each_s) {
    int rank = 0, more = 1, any = 0;
    long sums = 0, barriers = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (const double end = seconds() + each_s; more; ++sums) {
        palmette_region_begin("sum");
        const int own = rank == 0 && seconds() < end;
        MPI_Allreduce(&own, &more, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        palmette_region_end("sum");
    }
    MPI_Pcontrol(2);
    more = 1;
    for (const double end = seconds() + each_s; more; ++barriers) {
        MPI_Barrier(MPI_COMM_WORLD);
        any = rank == 0 && seconds() < end;
        MPI_Bcast(&any, 1, MPI_INT, 0, MPI_COMM_WORLD);
        more = any;
    }
    if (rank == 0) printf("sums %ld barriers %ld\n", sums, barriers);
}

int main(int argc, char **argv) {
    const char *const what = argc > 1 ? argv[1] : "";
    const long count = argc > 2 ? atol(argv[2]) : 0;
    if (strcmp(what, "around") == 0) {
        palmette_region_begin("before");
        spin(0.01);
        palmette_region_end("before");
        palmette_region_begin("whole");
    }
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (strcmp(what, "count") == 0) {
        const double begin = seconds();
        const double inside = times(count, "outer", "inner");
        printf("pairs %ld in %.9f to %.9f s\n", count, inside, seconds() - begin);
    }
    if (strcmp(what, "nested") == 0) nested();
    if (strcmp(what, "recursive") == 0) printf("recursive %ld\n", recursive((int)count));
    if (strcmp(what, "deep") == 0) deep();
    if (strcmp(what, "threads") == 0) threads(20, 4, count);
    if (strcmp(what, "mistakes") == 0) mistakes();
    if (strcmp(what, "interrupted") == 0) interrupted();
    if (strcmp(what, "phases") == 0) phases((double)count / 1000);
    if (strcmp(what, "switched") == 0) {
        times(3, "outer", "inner");
        MPI_Pcontrol(0);
        palmette_region_begin("begun while off");
        times(3, "outer", "inner");
        MPI_Pcontrol(1);
        palmette_region_end("begun while off");
        times(4, "outer", "inner");
    }
    if (strcmp(what, "killed") == 0) {
        palmette_region_begin("outer");
        times(count, "middle", "inner");
        spin(0.3);
        MPI_Barrier(MPI_COMM_WORLD);
        spin(0.2);
        MPI_Barrier(MPI_COMM_WORLD);
        raise(SIGKILL);
    }
    MPI_Finalize();
    if (strcmp(what, "around") == 0) {
        palmette_region_end("whole");
        palmette_region_begin("after");
        palmette_region_end("after");
    }
    return 0;
}
