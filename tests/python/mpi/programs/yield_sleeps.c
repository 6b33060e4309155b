/* Preloaded where ranks outnumber processors: a rank that polls and yields sleeps instead, for sched_yield() gives a
 * processor to nobody who has used as much of it (CFS), and each collective then waits for time slices. */
#include <sys/prctl.h>
#include <time.h>

int sched_yield(void) {
    static __thread int is_exact;
    const struct timespec pause = {0, 10000};
    if (!is_exact) is_exact = prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL) == 0; /* else 50 us come on top */
    (void)nanosleep(&pause, 0);
    return 0;
}
