/* Preload that turns sched_yield() into a short sleep.
 *
 * Open MPI yields while it polls; with more ranks than cores a yield only hands the core to the next poller, and the
 * ranks that have work wait for all of them. PALMETTE_NAP_US is the length of the sleep in microseconds (default 50; 0
 * yields as usual). Nothing else is replaced, so that it stands beside other preloads. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long nap_us = 50;

__attribute__((constructor)) static void read_setting(void) {
    const char *text = getenv("PALMETTE_NAP_US");
    if (text) nap_us = atol(text);
}

__attribute__((visibility("default"))) int sched_yield(void) {
    if (nap_us <= 0) return (int)syscall(SYS_sched_yield);
    /* A nap of a second or more would be a mistake in the setting; tv_nsec must stay below one. */
    const struct timespec nap = {0, nap_us < 1000000 ? nap_us * 1000 : 999999999};
    nanosleep(&nap, NULL);
    return 0;
}
