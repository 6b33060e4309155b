/* The candidates of a cell, and the successive halving that drops slow ones.
 *
 * Successive halving (Jamieson, Talwalkar 2016), made robust against noise: noise only lengthens calls, so early on a
 * candidate is judged by its fastest call, and by its median only after several calls. */
#ifndef TUNE_FIELD_H
#define TUNE_FIELD_H

#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../collbench/cell.h"
#include "../collbench/sorted.h"
#include "cells.h"

struct candidate {
    const char* text;
    bool is_mpi, is_table;
    const char* refused; /* why it isn't measured; NULL: it is */
    MPI_Comm comm;
    bool served; /* by palmette */
    int wrong;   /* ranks with a wrong result, summed over the checks */
    bool active;
    int rounds;              /* measured; all from the first on */
    double *time_s, *late_s; /* rank 0's */
};

/* Threshold for dropping candidates after so many rounds: `times` the median of the best, compared with the fastest
 * call or the median. With `halve`, only the better half of the rest and those within 3 % of the best are kept. */
struct rung {
    int rounds;
    double times;
    bool by_median, halve;
};
static const struct rung rungs[] = {{1, 6, false, false},   {2, 2.5, false, false}, {3, 1.7, false, false},
                                    {5, 1.3, true, true},   {10, 1.12, true, true}, {20, 1.06, true, true},
                                    {40, 1.03, true, false}};
enum { RUNGS = sizeof rungs / sizeof rungs[0], KEPT_BY_HALVING = 3 };
static const double as_good = 1.03;
/* Early on, candidates are dropped to save time: not where the difference is within noise. */
static const double worth_saving_s = 0.5e-3;

/* The sorted times of calls that started in time; of all calls, where none did. */
static int usable(const struct candidate* c, double* sorted) {
    int count = 0;
    for (int i = 0; i < c->rounds; ++i)
        if (in_time((struct call){0, c->late_s[i], c->time_s[i], 0})) sorted[count++] = c->time_s[i];
    if (count == 0) {
        memcpy(sorted, c->time_s, (size_t)c->rounds * sizeof *sorted);
        count = c->rounds;
    }
    sort(sorted, count);
    return count;
}

/* Rank 0: drops candidates that are too slow after `rounds` rounds. The choice of the table is the reference and is
 * never dropped. */
static void drop_slow(struct candidate* field, int count, int rounds, double* scratch) {
    double fastest[MOST_CANDIDATES], median[MOST_CANDIDATES], best = 0;
    const struct rung* rung = NULL;
    for (int i = 0; i < RUNGS; ++i)
        if (rungs[i].rounds == rounds) rung = &rungs[i];
    if (!rung) return;
    int active = 0;
    for (int i = 0; i < count; ++i) {
        if (!field[i].active) continue;
        const int good = usable(&field[i], scratch);
        fastest[i] = scratch[0];
        median[i] = middle(scratch, good);
        if (active++ == 0 || median[i] < best) best = median[i];
    }
    double sorted[MOST_CANDIDATES];
    int left = 0;
    for (int i = 0; i < count; ++i) {
        if (!field[i].active) continue;
        const double taken = rung->by_median ? median[i] : fastest[i];
        const bool saves = rung->by_median || taken - best > worth_saving_s;
        if (taken > rung->times * best && saves && !field[i].is_table)
            field[i].active = false;
        else
            sorted[left++] = median[i];
    }
    sort(sorted, left);
    const int half = left / 2 > KEPT_BY_HALVING ? left / 2 : KEPT_BY_HALVING;
    if (!rung->halve || left <= half) return;
    for (int i = 0; i < count; ++i)
        if (field[i].active && !field[i].is_table && !field[i].is_mpi && median[i] > sorted[half - 1] &&
            median[i] > as_good * best)
            field[i].active = false;
}

/* A random order of the active candidates, the same on all ranks. Returns their number. */
static int draw_order(const struct candidate* field, int count, uint64_t* random, int* order) {
    int active = 0;
    for (int i = 0; i < count; ++i)
        if (field[i].active) order[active++] = i;
    for (int i = active - 1; i > 0; --i) {
        *random = mixed(*random, 1);
        const int j = (int)((*random >> 33) % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    return active;
}

#endif
