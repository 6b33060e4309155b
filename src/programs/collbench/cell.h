/* Shared by collbench and tune: buffers of a cell, and verification of its result. */
#ifndef COLLBENCH_CELL_H
#define COLLBENCH_CELL_H

#include <limits.h>

#include "timing.h"
#include "work.h"

static struct work make_work(const struct collective* c, size_t size, int root) {
    struct work w = make_arguments(c, MPI_COMM_WORLD, size, root);
    const bool blocks = c->send_shape == BLOCKS || c->recv_shape == BLOCKS;
    if (blocks && (bytes_of_all(w.send_counts, &w) > INT_MAX || bytes_of_all(w.recv_counts, &w) > INT_MAX))
        stop("%s of %zu bytes on %d ranks: more than 2 GiB a rank", c->name, size, ranks);
    w.received = recv_bytes(c, &w);
    w.send = allocate(1, send_bytes(c, &w) + GUARD);
    w.recv = allocate(1, w.received + GUARD);
    put_sent(c, &w);
    return w;
}

static void free_work(struct work* w) {
    free_arguments(w);
    free(w->send);
    free(w->recv);
}

/* Delays the last rank of a barrier. Returns whether this rank left before that one entered; needs a common clock. */
static bool leaves_early(const struct collective* c, const struct work* w, enum variant variant, int* error) {
    PMPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == ranks - 1) sleep_until(now_s() + 2e-3);
    const double came_s = now_s();
    *error = c->call[variant](w);
    const double left_s = now_s();
    double last_s = 0;
    PMPI_Allreduce(&came_s, &last_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return left_s < last_s;
}

/* Calls once and verifies the whole receive buffer, guard included. Returns the number of ranks with a wrong result;
 * the first of them reports it. */
static int check(const struct collective* c, const struct work* w, enum variant variant, const char* called,
                 bool shared_clock) {
    unsigned char* expected = expect(c, w);
    int error = MPI_SUCCESS;
    bool early = false;
    if (has_data(c) || !shared_clock)
        error = c->call[variant](w);
    else
        early = leaves_early(c, w, variant, &error);
    const size_t at = first_wrong(c, w, expected);
    const bool differs = at < w->received + GUARD;
    const int mine = error != MPI_SUCCESS || differs || early;
    int wrong = 0, first = mine ? my_rank : ranks, lowest = ranks;
    PMPI_Allreduce(&mine, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    PMPI_Allreduce(&first, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (lowest == my_rank && early)
        fprintf(stderr, PROGRAM ": %s under %s: rank %d left before rank %d entered\n", c->name, called, my_rank,
                ranks - 1);
    else if (lowest == my_rank && differs)
        fprintf(stderr,
                PROGRAM ": %s of %zu bytes under %s: rank %d, byte %zu of %zu received: 0x%02x, expected 0x%02x\n",
                c->name, w->size, called, my_rank, at, w->received, w->recv[at], expected[at]);
    else if (lowest == my_rank)
        fprintf(stderr, PROGRAM ": %s of %zu bytes under %s: rank %d got MPI error %d\n", c->name, w->size, called,
                my_rank, error);
    free(expected);
    return wrong;
}

/* The harness itself uses PMPI_Bcast and PMPI_Reduce before and after each call, which warms the caches for short calls
 * of the MPI, but not for palmette's. So each short call follows an untimed one of its own variant. */
enum { primed_up_to = 64 << 10 };

#endif
