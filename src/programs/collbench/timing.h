/* Common start times. Ranks that start one after the other would hide part of a collective's time, and a barrier before each
 * call lets them do so: measured that way, a gather can look four times faster than the links allow. */
#ifndef COLLBENCH_TIMING_H
#define COLLBENCH_TIMING_H

#include <errno.h>
#include <mpi.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>

static const double longest_window_s = 0.25;
static const double woken_before_s = 300e-6;

struct timing {
    bool shared_clock; /* CLOCK_MONOTONIC is one clock for all ranks */
    bool spin;         /* there is a core for each rank: wait for the start without sleeping to the end */
    double window_s;   /* from rank 0's decision to the start; grows while ranks miss it. Rank 0's counts. */
    double shortest_window_s;
    double missed_s; /* how much too late this rank heard of the last start */
};

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void sleep_until(double time_s) {
    struct timespec t = {.tv_sec = (time_t)time_s, .tv_nsec = 0};
    t.tv_nsec = (long)((time_s - (double)t.tv_sec) * 1e9);
    /* The kernel may wake a sleeper 50 us late to save power, which would count as time of the call. Only here: the naps of
     * a polling MPI shall stay naps. */
    prctl(PR_SET_TIMERSLACK, 1L, 0L, 0L, 0L);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) continue;
    prctl(PR_SET_TIMERSLACK, 0L, 0L, 0L, 0L);
}

static void wait_until(double time_s, bool spin) {
    sleep_until(spin ? time_s - woken_before_s : time_s);
    while (spin && now_s() < time_s) continue;
}

/* Agree with all ranks on one more call: `more` counts on rank 0. Returns whether there is one, the time when it started in
 * *start_s, and how much later this rank did in *late_s. Nobody is still in an earlier call when somebody starts. */
static bool start_together(struct timing* t, bool more, double* start_s, double* late_s) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double missed_s = 0, start = -1;
    PMPI_Reduce(&t->missed_s, &missed_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        t->window_s *= missed_s > 0 ? 2 : 0.99;
        if (t->window_s < t->shortest_window_s) t->window_s = t->shortest_window_s;
        if (t->window_s > longest_window_s) t->window_s = longest_window_s;
        if (more) start = now_s() + t->window_s;
    }
    PMPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    t->missed_s = 0;
    if (start < 0) return false;
    if (!t->shared_clock) {
        PMPI_Barrier(MPI_COMM_WORLD);
        *start_s = now_s();
        *late_s = 0;
        return true;
    }
    if (now_s() > start) t->missed_s = now_s() - start;
    wait_until(start, t->spin);
    *start_s = start;
    *late_s = now_s() - start;
    return true;
}

#endif
