/* Window-based common start times. Staggered starts, which a barrier before each call permits, hide part of a
 * collective's time: measured that way, a gather can appear four times faster than the links allow. */
#ifndef COLLBENCH_TIMING_H
#define COLLBENCH_TIMING_H

#include <errno.h>
#include <mpi.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>

static const double longest_window_s = 0.25;
static const double woken_before_s = 300e-6;

/* A call: by how much the agreed start was missed, how late the call started, its time from the common start, and that
 * start. */
struct call {
    double missed_s, late_s, time_s, start_s;
};

struct timing {
    bool shared_clock; /* CLOCK_MONOTONIC is common to all ranks */
    bool spin;         /* not oversubscribed: spin before the start instead of sleeping */
    double window_s;   /* lead time of the start; doubled while ranks miss it. Valid on rank 0. */
    double shortest_window_s;
    double start_s;   /* of the current call */
    struct call mine; /* the current call, on this rank */
};

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void sleep_until(double time_s) {
    struct timespec t = {.tv_sec = (time_t)time_s, .tv_nsec = 0};
    t.tv_nsec = (long)((time_s - (double)t.tv_sec) * 1e9);
    /* The default timer slack may delay the wake-up by 50 us, which would count as time of the call. Set only here:
     * backoff sleeps of the MPI keep their slack. */
    prctl(PR_SET_TIMERSLACK, 1L, 0L, 0L, 0L);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) continue;
    prctl(PR_SET_TIMERSLACK, 0L, 0L, 0L, 0L);
}

static void wait_until(double time_s, bool spin) {
    sleep_until(spin ? time_s - woken_before_s : time_s);
    while (spin && now_s() < time_s) continue;
}

/* Agrees with all ranks on one more call, and starts it. `more` is that of rank 0; returns whether there is one. */
static bool start_together(struct timing* t, bool more) {
    double start_s = more ? now_s() + t->window_s : -1;
    PMPI_Bcast(&start_s, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (start_s < 0) return false;
    t->mine = (struct call){0, 0, 0, 0};
    if (t->shared_clock) {
        if (now_s() > start_s) t->mine.missed_s = now_s() - start_s;
        wait_until(start_s, t->spin);
        t->start_s = start_s;
        t->mine.late_s = now_s() - start_s;
    } else {
        PMPI_Barrier(MPI_COMM_WORLD);
        t->start_s = now_s();
    }
    return true;
}

/* To be called right after the call. Returns, on rank 0, the maxima over all ranks, once all have left the call. */
static struct call finish_together(struct timing* t) {
    t->mine.time_s = now_s() - t->start_s;
    double mine[] = {t->mine.missed_s, t->mine.late_s, t->mine.time_s}, worst[] = {0, 0, 0};
    PMPI_Reduce(mine, worst, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    t->window_s *= worst[0] > 0 ? 2 : 0.99;
    if (t->window_s < t->shortest_window_s) t->window_s = t->shortest_window_s;
    if (t->window_s > longest_window_s) t->window_s = longest_window_s;
    return (struct call){worst[0], worst[1], worst[2], t->start_s};
}

/* Whether a call started in time on all ranks: palmette.measure.statistics excludes others. */
static bool in_time(struct call worst) { return worst.late_s <= 2e-3 || worst.late_s <= 0.1 * worst.time_s; }

#endif
