/* Ranks that agree with as few messages as there are ranks, none of them a collective's: the simulator's own
 * collectives are what is measured, and those that look at nodes ask first, in each communicator, which ranks share
 * one. */
#ifndef SIMBENCH_TOGETHER_H
#define SIMBENCH_TOGETHER_H

#include <mpi.h>

enum { UP_TAG = 4712, DOWN_TAG = 4713 };

typedef double joining(double, double);

static double larger(double a, double b) { return a > b ? a : b; }

static double sum(double a, double b) { return a + b; }

/* All ranks' values joined, at rank 0 of the communicator, along a binomial tree; elsewhere those of the rank's own
 * subtree. */
static double joined_at_first(double value, joining* join, MPI_Comm comm) {
    int rank, size;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    for (int bit = 1; bit < size; bit *= 2) {
        if (rank & bit) {
            PMPI_Send(&value, 1, MPI_DOUBLE, rank - bit, UP_TAG, comm);
            break;
        }
        if (rank + bit >= size) continue;
        double other = 0;
        PMPI_Recv(&other, 1, MPI_DOUBLE, rank + bit, UP_TAG, comm, MPI_STATUS_IGNORE);
        value = join(value, other);
    }
    return value;
}

static double largest_at_first(double value, MPI_Comm comm) { return joined_at_first(value, larger, comm); }

static int sum_at_first(int value, MPI_Comm comm) { return (int)joined_at_first(value, sum, comm); }

/* Rank 0's value, at all: along the same tree. */
static double told_by_first(double value, MPI_Comm comm) {
    int rank, size, bit = 1;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    while (bit < size && !(rank & bit)) bit *= 2;
    if (rank) PMPI_Recv(&value, 1, MPI_DOUBLE, rank - bit, DOWN_TAG, comm, MPI_STATUS_IGNORE);
    for (bit /= 2; bit; bit /= 2)
        if (rank + bit < size) PMPI_Send(&value, 1, MPI_DOUBLE, rank + bit, DOWN_TAG, comm);
    return value;
}

static double largest_at_all(double value, MPI_Comm comm) { return told_by_first(largest_at_first(value, comm), comm); }

#endif
