/* Sorting of times, and their median. */
#ifndef COLLBENCH_SORTED_H
#define COLLBENCH_SORTED_H

#include <stdlib.h>

static int by_value(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void sort(double* values, int count) { qsort(values, (size_t)count, sizeof *values, by_value); }

static double middle(const double* sorted, int count) {
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

#endif
