/* Communication-computation overlap: the share of a nonblocking collective's time hidden behind computation.
 *
 * The same computation runs between start and wait under both variants: as long as the slower variant's call without
 * computation, in slices, each followed by one MPI_Test, as programs do to drive progress. The hidden time is the sum
 * of both times minus the time of call and computation together. */
#ifndef COLLBENCH_OVERLAP_H
#define COLLBENCH_OVERLAP_H

#include "collectives.h"
#include "sorted.h"
#include "timing.h"

enum { OVERLAP_SLICES = 16, FEWEST_OVERLAPS = 5, MOST_OVERLAPS = 50 };

/* Valid on rank 0. `hidden`: share of the call's own time, 0 to 1, by variant. */
struct overlap {
    double computed_s;
    double hidden[2];
};

/* Sorts the values. */
static double median_of(double* values, int count) {
    if (count == 0) return 0;
    sort(values, count);
    return middle(values, count);
}

/* Starts, alternates computation and MPI_Test, and waits. */
static void call_and_compute(const struct collective* c, const struct work* w, enum variant variant, double computed_s,
                             bool spin) {
    MPI_Request request;
    int done;
    if (c->start[variant](w, &request) != MPI_SUCCESS) return;
    const double begin_s = now_s();
    for (int slice = 1; slice <= OVERLAP_SLICES; ++slice) {
        const double end_s = begin_s + computed_s * slice / OVERLAP_SLICES;
        if (spin)
            while (now_s() < end_s) continue;
        else
            sleep_until(end_s);
        if (variant == ALONE)
            PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
        else
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    if (variant == ALONE)
        PMPI_Wait(&request, MPI_STATUS_IGNORE);
    else
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Collective. `by_itself_s`: the median time of the call by variant, on rank 0. Takes at most `seconds`, apart from the
 * minimum number of samples. */
static struct overlap measure_overlap(const struct collective* c, const struct work* w, struct timing* t,
                                      const double by_itself_s[2], double seconds) {
    struct overlap result = {by_itself_s[ALONE] > by_itself_s[PALMETTE] ? by_itself_s[ALONE] : by_itself_s[PALMETTE],
                             {0, 0}};
    PMPI_Bcast(&result.computed_s, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    double together_s[2][MOST_OVERLAPS];
    const double begin_s = now_s();
    int count = 0;
    for (;; ++count) {
        const bool more = count < MOST_OVERLAPS && (count < FEWEST_OVERLAPS || now_s() - begin_s < seconds);
        bool over = false;
        for (int turn = 0; turn < 2 && !over; ++turn) {
            const enum variant variant = (count + turn) % 2 ? PALMETTE : ALONE;
            over = !start_together(t, more);
            if (over) break;
            call_and_compute(c, w, variant, result.computed_s, t->spin);
            together_s[variant][count] = finish_together(t).time_s;
        }
        if (over) break;
    }
    for (int v = ALONE; v <= PALMETTE; ++v) {
        const double saved_s = by_itself_s[v] + result.computed_s - median_of(together_s[v], count);
        const double hidden = by_itself_s[v] > 0 ? saved_s / by_itself_s[v] : 0;
        result.hidden[v] = hidden < 0 ? 0 : hidden > 1 ? 1 : hidden;
    }
    return result;
}

#endif
