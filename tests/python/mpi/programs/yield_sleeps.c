/* Preloaded where ranks outnumber processors: a rank that polls and yields sleeps instead, for sched_yield() gives a
 * processor to nobody who has used as much of it (CFS), and each collective then waits for time slices. */
#include <time.h>

int sched_yield(void) {
    const struct timespec pause = {0, 20000};
    (void)nanosleep(&pause, 0);
    return 0;
}
