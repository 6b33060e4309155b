/* Processes that simulate aggregators: palmette's service positions. Unavailable in the program without palmette
 * (SIMBENCH_ALONE). */
#ifndef SIMBENCH_SERVICES_H
#define SIMBENCH_SERVICES_H

#ifdef SIMBENCH_ALONE

static void set_services(int count) { (void)count; }
static int serve_allreduce(int elements) { return (void)elements, -1; }

#else

#ifdef __cplusplus
extern "C" {
#endif

/* Before MPI_Init, on all processes: the last `count` are services. */
void set_services(int count);

/* A service's part in an allreduce of so many unsigned that all ranks call; nothing where it isn't made through
 * services. Returns an MPI code. */
int serve_allreduce(int elements);

#ifdef __cplusplus
}
#endif

#endif

#endif
