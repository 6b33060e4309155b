/* Binomial-tree reductions and broadcasts by point-to-point messages: the simulator's own collectives are what is
 * measured, and its node-aware ones would first discover the ranks of each node, in each communicator. */
#ifndef SIMBENCH_TOGETHER_H
#define SIMBENCH_TOGETHER_H

#include <mpi.h>

enum { UP_TAG = 4712, DOWN_TAG = 4713 };

typedef double combine_function(double, double);

static double maximum(double a, double b) { return a > b ? a : b; }

static double sum(double a, double b) { return a + b; }

/* Reduction to rank 0 of the communicator along a binomial tree; other ranks return the value of their subtree. */
static double reduce_at_first(double value, combine_function* combine, MPI_Comm comm) {
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
        value = combine(value, other);
    }
    return value;
}

static double max_at_first(double value, MPI_Comm comm) { return reduce_at_first(value, maximum, comm); }

static int sum_at_first(int value, MPI_Comm comm) { return (int)reduce_at_first(value, sum, comm); }

/* Broadcast of rank 0's value along the same tree. */
static double broadcast_from_first(double value, MPI_Comm comm) {
    int rank, size, bit = 1;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    while (bit < size && !(rank & bit)) bit *= 2;
    if (rank) PMPI_Recv(&value, 1, MPI_DOUBLE, rank - bit, DOWN_TAG, comm, MPI_STATUS_IGNORE);
    for (bit /= 2; bit; bit /= 2)
        if (rank + bit < size) PMPI_Send(&value, 1, MPI_DOUBLE, rank + bit, DOWN_TAG, comm);
    return value;
}

static double max_at_all(double value, MPI_Comm comm) { return broadcast_from_first(max_at_first(value, comm), comm); }

#endif
