/* Preload that turns sched_yield() into a short sleep.
 *
 * A backoff sleep for oversubscribed cores: Open MPI yields while it polls, but a yield only passes the core to the
 * next poller, and the ranks that have work wait for all of them. PALMETTE_YIELD_SLEEP_US is the length of the sleep in
 * microseconds (default 50; 0 yields as usual). Nothing else is replaced, so that it is compatible with other preloads.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long sleep_us = 50;

__attribute__((constructor)) static void read_setting(void) {
    const char *text = getenv("PALMETTE_YIELD_SLEEP_US");
    if (text) sleep_us = atol(text);
}

__attribute__((visibility("default"))) int sched_yield(void) {
    if (sleep_us <= 0) return (int)syscall(SYS_sched_yield);
    /* A sleep of a second or more would be a mistake in the setting; tv_nsec must be below one second. */
    const struct timespec length = {0, sleep_us < 1000000 ? sleep_us * 1000 : 999999999};
    nanosleep(&length, NULL);
    return 0;
}
