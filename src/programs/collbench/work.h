/* The arguments of one cell's calls, and verification of results; independent of the method of timing. */
#ifndef COLLBENCH_WORK_H
#define COLLBENCH_WORK_H

#include "../program.h"
#include "collectives.h"

enum { GUARD = 64, UNTOUCHED = 0x5a };

/* All but the buffers and `received`. */
static struct work make_arguments(const struct collective* c, MPI_Comm comm, size_t size, int root) {
    struct work w = {.comm = comm,
                     .rank = my_rank,
                     .ranks = ranks,
                     .root = root,
                     .size = size,
                     .count = (int)size,
                     .elements = (int)(size / sizeof(unsigned))};
    int** const lists[] = {&w.send_counts, &w.send_offsets, &w.recv_counts, &w.recv_offsets, &w.element_counts};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; ++i) *lists[i] = allocate((size_t)ranks, sizeof(int));
    w.types = allocate((size_t)ranks, sizeof(MPI_Datatype));
    size_t sent = 0, received = 0;
    const bool pairs = c->lengths == PAIRWISE;
    for (int r = 0; r < ranks; ++r) {
        w.types[r] = MPI_BYTE;
        w.send_counts[r] = (int)block_bytes(c, size, pairs ? my_rank : r, r);
        w.recv_counts[r] = (int)block_bytes(c, size, r, pairs ? my_rank : r);
        w.element_counts[r] = (int)((size_t)w.recv_counts[r] / sizeof(unsigned));
        w.send_offsets[r] = (int)sent;
        w.recv_offsets[r] = (int)received;
        sent += (size_t)w.send_counts[r];
        received += (size_t)w.recv_counts[r];
    }
    return w;
}

static void free_arguments(struct work* w) {
    int* const lists[] = {w->send_counts, w->send_offsets, w->recv_counts, w->recv_offsets, w->element_counts};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; ++i) free(lists[i]);
    free(w->types);
}

/* Fills the buffers for a verified call. Returns the expected receive buffer, guard included. */
static unsigned char* expect(const struct collective* c, const struct work* w) {
    const size_t bytes = w->received + GUARD;
    unsigned char* expected = allocate(1, bytes);
    memset(expected, UNTOUCHED, bytes);
    memset(w->recv, UNTOUCHED, bytes);
    put_expected(c, w, expected);
    put_sent(c, w);
    return expected;
}

/* Index of the first wrong byte received; `received` + GUARD where there is none. */
static size_t first_wrong(const struct collective* c, const struct work* w, const unsigned char* expected) {
    const size_t bytes = w->received + GUARD;
    size_t at = is_defined(c, w) ? 0 : w->received;
    while (at < bytes && w->recv[at] == expected[at]) ++at;
    return at;
}

#endif
