/* The collectives that collbench knows: one row each, with what is sent, what must arrive, and the call. */
#ifndef COLLBENCH_COLLECTIVES_H
#define COLLBENCH_COLLECTIVES_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum shape { NOTHING, BLOCK, BLOCKS }; /* BLOCKS: one for each rank, in rank order */
enum place { EVERYWHERE, AT_ROOT };
enum effect { MOVE, SUM };        /* SUM: elements of type unsigned, added up */
enum lengths { EVEN, UNEVEN };    /* UNEVEN: blocks of about 1/2, 1 and 3/2 of the size, see block_bytes */
enum variant { ALONE, PALMETTE }; /* the MPI by itself (PMPI_X), and whatever stands in front of it (MPI_X) */

/* The arguments of one cell, the same for each of its calls. */
struct work {
    int rank, ranks, root;
    size_t size;           /* bytes a block, on average */
    int count;             /* the size as a count of bytes */
    int elements;          /* the size as a count of unsigned */
    int *counts, *offsets; /* bytes, by rank */
    unsigned char *send, *recv;
};

/* name, MPI_Name, shape and place of what is sent and received, effect, lengths, arguments.
 * A size is bytes a block: what a rank contributes to gather and allgather, gets from scatter, sends to each other rank in
 * alltoall, and the whole vector in bcast, reduce and allreduce. */
#define COLLBENCH_ROWS(ROW)                                                                                         \
    ROW(gather, Gather, BLOCK, EVERYWHERE, BLOCKS, AT_ROOT, MOVE, EVEN,                                             \
        (w->send, w->count, MPI_BYTE, w->recv, w->count, MPI_BYTE, w->root, MPI_COMM_WORLD))                        \
    ROW(scatter, Scatter, BLOCKS, AT_ROOT, BLOCK, EVERYWHERE, MOVE, EVEN,                                           \
        (w->send, w->count, MPI_BYTE, w->recv, w->count, MPI_BYTE, w->root, MPI_COMM_WORLD))                        \
    ROW(allgather, Allgather, BLOCK, EVERYWHERE, BLOCKS, EVERYWHERE, MOVE, EVEN,                                    \
        (w->send, w->count, MPI_BYTE, w->recv, w->count, MPI_BYTE, MPI_COMM_WORLD))                                 \
    ROW(gatherv, Gatherv, BLOCK, EVERYWHERE, BLOCKS, AT_ROOT, MOVE, UNEVEN,                                         \
        (w->send, w->counts[w->rank], MPI_BYTE, w->recv, w->counts, w->offsets, MPI_BYTE, w->root, MPI_COMM_WORLD)) \
    ROW(scatterv, Scatterv, BLOCKS, AT_ROOT, BLOCK, EVERYWHERE, MOVE, UNEVEN,                                       \
        (w->send, w->counts, w->offsets, MPI_BYTE, w->recv, w->counts[w->rank], MPI_BYTE, w->root, MPI_COMM_WORLD)) \
    ROW(allgatherv, Allgatherv, BLOCK, EVERYWHERE, BLOCKS, EVERYWHERE, MOVE, UNEVEN,                                \
        (w->send, w->counts[w->rank], MPI_BYTE, w->recv, w->counts, w->offsets, MPI_BYTE, MPI_COMM_WORLD))          \
    ROW(bcast, Bcast, NOTHING, AT_ROOT, BLOCK, EVERYWHERE, MOVE, EVEN,                                              \
        (w->recv, w->count, MPI_BYTE, w->root, MPI_COMM_WORLD))                                                     \
    ROW(alltoall, Alltoall, BLOCKS, EVERYWHERE, BLOCKS, EVERYWHERE, MOVE, EVEN,                                     \
        (w->send, w->count, MPI_BYTE, w->recv, w->count, MPI_BYTE, MPI_COMM_WORLD))                                 \
    ROW(reduce, Reduce, BLOCK, EVERYWHERE, BLOCK, AT_ROOT, SUM, EVEN,                                               \
        (w->send, w->recv, w->elements, MPI_UNSIGNED, MPI_SUM, w->root, MPI_COMM_WORLD))                            \
    ROW(allreduce, Allreduce, BLOCK, EVERYWHERE, BLOCK, EVERYWHERE, SUM, EVEN,                                      \
        (w->send, w->recv, w->elements, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD))                                     \
    ROW(reduce_scatter_block, Reduce_scatter_block, BLOCKS, EVERYWHERE, BLOCK, EVERYWHERE, SUM, EVEN,               \
        (w->send, w->recv, w->elements, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD))

struct collective {
    const char* name;
    enum shape send_shape;
    enum place send_place;
    enum shape recv_shape;
    enum place recv_place;
    enum effect effect;
    enum lengths lengths;
    int (*call[2])(const struct work*); /* by variant */
};

#define COLLBENCH_CALLS(name, Name, ss, sp, rs, rp, effect, lengths, arguments)     \
    static int alone_##name(const struct work* w) { return PMPI_##Name arguments; } \
    static int palmette_##name(const struct work* w) { return MPI_##Name arguments; }
COLLBENCH_ROWS(COLLBENCH_CALLS)

#define COLLBENCH_ENTRY(name, Name, ss, sp, rs, rp, effect, lengths, arguments) \
    {#name, ss, sp, rs, rp, effect, lengths, {alone_##name, palmette_##name}},
static const struct collective collectives[] = {COLLBENCH_ROWS(COLLBENCH_ENTRY)};
enum { COLLECTIVES = sizeof collectives / sizeof collectives[0] };

static const struct collective* find_collective(const char* name) {
    for (int i = 0; i < COLLECTIVES; ++i)
        if (strcmp(collectives[i].name, name) == 0) return &collectives[i];
    return NULL;
}

/* Bytes of the block of `rank`. Three neighbours have three times the size together. */
static size_t block_bytes(const struct collective* c, size_t size, int rank) {
    if (c->lengths == EVEN) return size;
    return rank % 3 == 0 ? size - size / 2 : rank % 3 == 1 ? size : size + size / 2;
}

/* A number that depends on all bits of both arguments (the finalizer of splitmix64). */
static uint64_t mixed(uint64_t a, uint64_t b) {
    uint64_t z = a * 0x9e3779b97f4a7c15u + b * 0xd1b54a32d192ed03u + 0x2545f4914f6cdd1du;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Byte i of what `source` sends to `target`; to all the same: target 0. */
static unsigned char byte_of(int source, int target, size_t i) {
    return (unsigned char)((mixed((uint64_t)source + 1, (uint64_t)target) + i * 0x9e3779b97f4a7c15u) >> 56);
}

static unsigned weight_of(int rank) { return (unsigned)mixed((uint64_t)rank + 1, 77); }

/* Element i of a vector whose element factor is `weight`: sums of vectors have the sum of the weights. */
static unsigned element_of(unsigned weight, size_t i) { return weight * (unsigned)(i % 1021 + 1); }

/* Write `bytes` bytes from element `first` on. */
static void put_elements(unsigned char* at, unsigned weight, size_t first, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof(unsigned); ++i) {
        const unsigned value = element_of(weight, first + i);
        memcpy(at + i * sizeof value, &value, sizeof value);
    }
}

static void put_block(unsigned char* at, int source, int target, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) at[i] = byte_of(source, target, i);
}

static bool takes_part(enum place place, const struct work* w) { return place == EVERYWHERE || w->rank == w->root; }

/* Bytes of a buffer of this shape, the same on all ranks. */
static size_t shape_bytes(const struct collective* c, enum shape shape, const struct work* w) {
    if (shape == NOTHING) return 0;
    if (shape == BLOCK) return block_bytes(c, w->size, w->rank);
    size_t sum = 0;
    for (int r = 0; r < w->ranks; ++r) sum += block_bytes(c, w->size, r);
    return sum;
}

/* Fill the send buffer; for collectives without one, the root's receive buffer. */
static void put_sent(const struct collective* c, const struct work* w) {
    if (!takes_part(c->send_place, w)) return;
    if (c->send_shape == NOTHING) {
        put_block(w->recv, w->rank, 0, shape_bytes(c, c->recv_shape, w));
    } else if (c->effect == SUM) {
        put_elements(w->send, weight_of(w->rank), 0, shape_bytes(c, c->send_shape, w));
    } else if (c->send_shape == BLOCK) {
        put_block(w->send, w->rank, 0, block_bytes(c, w->size, w->rank));
    } else {
        for (int r = 0; r < w->ranks; ++r) put_block(w->send + w->offsets[r], w->rank, r, block_bytes(c, w->size, r));
    }
}

/* Write into `at` what this rank's receive buffer must hold after the call. */
static void put_expected(const struct collective* c, const struct work* w, unsigned char* at) {
    if (!takes_part(c->recv_place, w)) return;
    const int target = c->send_shape == BLOCKS ? w->rank : 0;
    if (c->effect == SUM) {
        unsigned weight = 0;
        for (int r = 0; r < w->ranks; ++r) weight += weight_of(r);
        const size_t first = c->send_shape == BLOCKS ? (size_t)w->rank * (size_t)w->elements : 0;
        put_elements(at, weight, first, shape_bytes(c, c->recv_shape, w));
    } else if (c->recv_shape == BLOCK) {
        put_block(at, w->root, target, block_bytes(c, w->size, w->rank));
    } else {
        for (int r = 0; r < w->ranks; ++r) put_block(at + w->offsets[r], r, target, block_bytes(c, w->size, r));
    }
}

#endif
