/* Waiting that leaves the processor to others: ranks that have no part in an experiment must not disturb it by polling.
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

/* The next nap after one of this length: short at first, so that a quick answer is met quickly. */
static double longer(double nap_s) { return nap_s < 2e-3 ? nap_s * 1.5 : nap_s; }

static void wait_napping(MPI_Request* request) {
    double nap_s = 100e-6;
    for (int done = 0;; nap_s = longer(nap_s)) {
        PMPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done) return;
        sleep_s(nap_s);
    }
}

/* Wait for a message without receiving it. Returns its length in doubles. */
static int probe_napping(int from, int tag) {
    double nap_s = 100e-6;
    for (;; nap_s = longer(nap_s)) {
        int there = 0, count = 0;
        MPI_Status status;
        PMPI_Iprobe(from, tag, MPI_COMM_WORLD, &there, &status);
        if (there) {
            PMPI_Get_count(&status, MPI_DOUBLE, &count);
            return count;
        }
        sleep_s(nap_s);
    }
}

/* Let time pass: asleep at first, awake at the end, so that what comes next doesn't pay for waking up. */
static void pass_time(double seconds) {
    const double end_s = now_s() + seconds, awake_s = 200e-6;
    if (seconds > awake_s) sleep_s(seconds - awake_s);
    while (now_s() < end_s) continue;
}

#endif
