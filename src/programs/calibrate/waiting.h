/* Waiting with backoff sleeps instead of polling: idle ranks must not disturb an experiment.
 */
#ifndef CALIBRATE_WAITING_H
#define CALIBRATE_WAITING_H

#include <mpi.h>
#include <time.h>

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void sleep_s(double seconds) {
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
}

/* The next backoff sleep after one of this length: short at first, for a low response latency. */
static double next_backoff(double backoff_s) { return backoff_s < 2e-3 ? backoff_s * 1.5 : backoff_s; }

static void wait_with_backoff(MPI_Request* request) {
    double backoff_s = 100e-6;
    for (int done = 0;; backoff_s = next_backoff(backoff_s)) {
        PMPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done) return;
        sleep_s(backoff_s);
    }
}

/* Wait for a message without receiving it. Returns its length in doubles. */
static int probe_with_backoff(int from, int tag) {
    double backoff_s = 100e-6;
    for (;; backoff_s = next_backoff(backoff_s)) {
        int found = 0, count = 0;
        MPI_Status status;
        PMPI_Iprobe(from, tag, MPI_COMM_WORLD, &found, &status);
        if (found) {
            PMPI_Get_count(&status, MPI_DOUBLE, &count);
            return count;
        }
        sleep_s(backoff_s);
    }
}

/* Waits: sleeps first and spins at the end, so that the wake-up latency doesn't add to the next measurement. */
static void pass_time(double seconds) {
    const double end_s = now_s() + seconds, awake_s = 200e-6;
    if (seconds > awake_s) sleep_s(seconds - awake_s);
    while (now_s() < end_s) continue;
}

#endif
