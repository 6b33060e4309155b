/* What collbench and tune share: work for one cell, and checking its result. A program defines PROGRAM before it includes this. */
#ifndef COLLBENCH_CELL_H
#define COLLBENCH_CELL_H

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "collectives.h"
#include "timing.h"

enum { GUARD = 64, UNTOUCHED = 0x5a };

static int my_rank, ranks;

static void stop(const char* form, ...) {
    va_list list;
    va_start(list, form);
    fprintf(stderr, PROGRAM ": rank %d: ", my_rank);
    vfprintf(stderr, form, list);
    fputc('\n', stderr);
    va_end(list);
    PMPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static void* room(size_t count, size_t bytes) {
    void* memory = calloc(count ? count : 1, bytes);
    if (!memory) stop("no memory for %zu bytes; take smaller sizes or fewer ranks", count * bytes);
    return memory;
}

static struct work make_work(const struct collective* c, size_t size, int root) {
    struct work w = {.comm = MPI_COMM_WORLD,
                     .rank = my_rank,
                     .ranks = ranks,
                     .root = root,
                     .size = size,
                     .count = (int)size,
                     .elements = (int)(size / sizeof(unsigned))};
    int** const lists[] = {&w.send_counts, &w.send_offsets, &w.recv_counts, &w.recv_offsets, &w.element_counts};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; ++i) *lists[i] = room((size_t)ranks, sizeof(int));
    w.types = room((size_t)ranks, sizeof(MPI_Datatype));
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
    const bool blocks = c->send_shape == BLOCKS || c->recv_shape == BLOCKS;
    if (blocks && (sent > INT_MAX || received > INT_MAX))
        stop("%s of %zu bytes on %d ranks: more than 2 GiB a rank", c->name, size, ranks);
    w.send = room(1, send_bytes(c, &w) + GUARD);
    w.recv = room(1, recv_bytes(c, &w) + GUARD);
    put_sent(c, &w);
    return w;
}

static void free_work(struct work* w) {
    int* const lists[] = {w->send_counts, w->send_offsets, w->recv_counts, w->recv_offsets, w->element_counts};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; ++i) free(lists[i]);
    free(w->types);
    free(w->send);
    free(w->recv);
}

/* Let the last rank come late to a barrier. Returns whether this rank left before that one came; clocks must be the same. */
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

/* Call once and compare the whole receive buffer, also where nothing may be written. Returns on how many ranks it is wrong;
 * the first of them says what. */
static int check(const struct collective* c, const struct work* w, enum variant variant, const char* called,
                 bool shared_clock) {
    const size_t bytes = recv_bytes(c, w) + GUARD;
    unsigned char* expected = room(1, bytes);
    memset(expected, UNTOUCHED, bytes);
    memset(w->recv, UNTOUCHED, bytes);
    put_expected(c, w, expected);
    put_sent(c, w);
    int error = MPI_SUCCESS;
    bool early = false;
    if (has_data(c) || !shared_clock)
        error = c->call[variant](w);
    else
        early = leaves_early(c, w, variant, &error);
    size_t at = is_defined(c, w) ? 0 : bytes - GUARD;
    while (at < bytes && w->recv[at] == expected[at]) ++at;
    const int mine = error != MPI_SUCCESS || at < bytes || early;
    int wrong = 0, first = mine ? my_rank : ranks, lowest = ranks;
    PMPI_Allreduce(&mine, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    PMPI_Allreduce(&first, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (lowest == my_rank && early)
        fprintf(stderr, PROGRAM ": %s under %s: rank %d left before rank %d came\n", c->name, called, my_rank,
                ranks - 1);
    else if (lowest == my_rank && at < bytes)
        fprintf(stderr,
                PROGRAM ": %s of %zu bytes under %s: rank %d, byte %zu of %zu received: 0x%02x, expected 0x%02x\n",
                c->name, w->size, called, my_rank, at, bytes - GUARD, w->recv[at], expected[at]);
    else if (lowest == my_rank)
        fprintf(stderr, PROGRAM ": %s of %zu bytes under %s: rank %d got MPI error %d\n", c->name, w->size, called,
                my_rank, error);
    free(expected);
    return wrong;
}

/* What ranks agree on before and after each call goes through PMPI_Bcast and PMPI_Reduce. Short calls of the MPI alone would find
 * their code and memory warm and palmette's not: they follow one of their own variant that isn't timed. */
enum { primed_up_to = 64 << 10 };

#endif
