/* The collectives that collbench knows: one row each, with send and receive buffers, expected result, and the call. */
#ifndef COLLBENCH_COLLECTIVES_H
#define COLLBENCH_COLLECTIVES_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum shape { NOTHING, BLOCK, BLOCKS }; /* BLOCKS: one for each rank, in rank order */
enum place { EVERYWHERE, AT_ROOT };
/* MOVE: data movement. The others are sums of elements of type unsigned: over all ranks, inclusive scan, exclusive
 * scan. */
enum effect { MOVE, SUM, SUM_TO, SUM_BEFORE };
/* UNEVEN: blocks of about 1/2, 1 and 3/2 of the size by the rank that they belong to; PAIRWISE: by sender and receiver.
 */
enum lengths { EVEN, UNEVEN, PAIRWISE };
enum variant { ALONE, PALMETTE }; /* the MPI by itself (PMPI_X), and what is interposed (MPI_X) */

/* The arguments of one cell, the same for each of its calls. */
struct work {
    MPI_Comm comm;
    int rank, ranks, root;
    size_t size;                                                  /* bytes a block, on average */
    int count;                                                    /* the size as a count of bytes */
    int elements;                                                 /* the size as a count of unsigned */
    int *send_counts, *send_offsets, *recv_counts, *recv_offsets; /* bytes, by rank; identical unless PAIRWISE */
    int* element_counts;                                          /* of unsigned, by rank */
    MPI_Datatype* types;                                          /* MPI_BYTE for each rank */
    unsigned char *send, *recv;
    size_t received; /* bytes of `recv`, without the guard behind them */
};

#define SEND_EVEN w->send, w->count, MPI_BYTE
#define RECV_EVEN w->recv, w->count, MPI_BYTE
#define SEND_OWN w->send, w->send_counts[w->rank], MPI_BYTE
#define RECV_OWN w->recv, w->recv_counts[w->rank], MPI_BYTE
#define SEND_EACH w->send, w->send_counts, w->send_offsets
#define RECV_EACH w->recv, w->recv_counts, w->recv_offsets
#define ADD_UP w->send, w->recv, w->elements, MPI_UNSIGNED, MPI_SUM
#define ALL w->comm

/* name, MPI_Name, shape and place of what is sent and received, effect, lengths, arguments.
 * A size is bytes a block: what a rank contributes to gather and allgather, gets from scatter and reduce_scatter, sends
 * to each other rank in alltoall, and the whole vector in the others. */
#define COLLBENCH_ROWS(ROW)                                                                                          \
    ROW(gather, Gather, BLOCK, EVERYWHERE, BLOCKS, AT_ROOT, MOVE, EVEN, (SEND_EVEN, RECV_EVEN, w->root, ALL))        \
    ROW(scatter, Scatter, BLOCKS, AT_ROOT, BLOCK, EVERYWHERE, MOVE, EVEN, (SEND_EVEN, RECV_EVEN, w->root, ALL))      \
    ROW(allgather, Allgather, BLOCK, EVERYWHERE, BLOCKS, EVERYWHERE, MOVE, EVEN, (SEND_EVEN, RECV_EVEN, ALL))        \
    ROW(gatherv, Gatherv, BLOCK, EVERYWHERE, BLOCKS, AT_ROOT, MOVE, UNEVEN,                                          \
        (SEND_OWN, RECV_EACH, MPI_BYTE, w->root, ALL))                                                               \
    ROW(scatterv, Scatterv, BLOCKS, AT_ROOT, BLOCK, EVERYWHERE, MOVE, UNEVEN,                                        \
        (SEND_EACH, MPI_BYTE, RECV_OWN, w->root, ALL))                                                               \
    ROW(allgatherv, Allgatherv, BLOCK, EVERYWHERE, BLOCKS, EVERYWHERE, MOVE, UNEVEN,                                 \
        (SEND_OWN, RECV_EACH, MPI_BYTE, ALL))                                                                        \
    ROW(bcast, Bcast, NOTHING, AT_ROOT, BLOCK, EVERYWHERE, MOVE, EVEN, (RECV_EVEN, w->root, ALL))                    \
    ROW(reduce, Reduce, BLOCK, EVERYWHERE, BLOCK, AT_ROOT, SUM, EVEN, (ADD_UP, w->root, ALL))                        \
    ROW(allreduce, Allreduce, BLOCK, EVERYWHERE, BLOCK, EVERYWHERE, SUM, EVEN, (ADD_UP, ALL))                        \
    ROW(reduce_scatter, Reduce_scatter, BLOCKS, EVERYWHERE, BLOCK, EVERYWHERE, SUM, UNEVEN,                          \
        (w->send, w->recv, w->element_counts, MPI_UNSIGNED, MPI_SUM, ALL))                                           \
    ROW(reduce_scatter_block, Reduce_scatter_block, BLOCKS, EVERYWHERE, BLOCK, EVERYWHERE, SUM, EVEN, (ADD_UP, ALL)) \
    ROW(alltoall, Alltoall, BLOCKS, EVERYWHERE, BLOCKS, EVERYWHERE, MOVE, EVEN, (SEND_EVEN, RECV_EVEN, ALL))         \
    ROW(alltoallv, Alltoallv, BLOCKS, EVERYWHERE, BLOCKS, EVERYWHERE, MOVE, PAIRWISE,                                \
        (SEND_EACH, MPI_BYTE, RECV_EACH, MPI_BYTE, ALL))                                                             \
    ROW(alltoallw, Alltoallw, BLOCKS, EVERYWHERE, BLOCKS, EVERYWHERE, MOVE, PAIRWISE,                                \
        (SEND_EACH, w->types, RECV_EACH, w->types, ALL))                                                             \
    ROW(barrier, Barrier, NOTHING, EVERYWHERE, NOTHING, EVERYWHERE, MOVE, EVEN, (ALL))                               \
    ROW(scan, Scan, BLOCK, EVERYWHERE, BLOCK, EVERYWHERE, SUM_TO, EVEN, (ADD_UP, ALL))                               \
    ROW(exscan, Exscan, BLOCK, EVERYWHERE, BLOCK, EVERYWHERE, SUM_BEFORE, EVEN, (ADD_UP, ALL))

/* Nonblocking collectives: start and wait. */
#define COLLBENCH_NONBLOCKING_ROWS(ROW)                                                                      \
    ROW(iallgather, Iallgather, BLOCK, EVERYWHERE, BLOCKS, EVERYWHERE, MOVE, EVEN,                           \
        (SEND_EVEN, RECV_EVEN, ALL, request))                                                                \
    ROW(ibcast, Ibcast, NOTHING, AT_ROOT, BLOCK, EVERYWHERE, MOVE, EVEN, (RECV_EVEN, w->root, ALL, request)) \
    ROW(iallreduce, Iallreduce, BLOCK, EVERYWHERE, BLOCK, EVERYWHERE, SUM, EVEN, (ADD_UP, ALL, request))     \
    ROW(ialltoall, Ialltoall, BLOCKS, EVERYWHERE, BLOCKS, EVERYWHERE, MOVE, EVEN,                            \
        (SEND_EVEN, RECV_EVEN, ALL, request))                                                                \
    ROW(ireduce, Ireduce, BLOCK, EVERYWHERE, BLOCK, AT_ROOT, SUM, EVEN, (ADD_UP, w->root, ALL, request))     \
    ROW(ibarrier, Ibarrier, NOTHING, EVERYWHERE, NOTHING, EVERYWHERE, MOVE, EVEN, (ALL, request))            \
    ROW(iscan, Iscan, BLOCK, EVERYWHERE, BLOCK, EVERYWHERE, SUM_TO, EVEN, (ADD_UP, ALL, request))            \
    ROW(iexscan, Iexscan, BLOCK, EVERYWHERE, BLOCK, EVERYWHERE, SUM_BEFORE, EVEN, (ADD_UP, ALL, request))

struct collective {
    const char* name;
    enum shape send_shape;
    enum place send_place;
    enum shape recv_shape;
    enum place recv_place;
    enum effect effect;
    enum lengths lengths;
    int (*call[2])(const struct work*);                /* by variant; of nonblocking ones start and wait */
    int (*start[2])(const struct work*, MPI_Request*); /* by variant; NULL: blocking */
};

#define COLLBENCH_CALLS(name, Name, ss, sp, rs, rp, effect, lengths, arguments)              \
    static int alone_##name(const struct work* w) { return (void)w, PMPI_##Name arguments; } \
    static int palmette_##name(const struct work* w) { return (void)w, MPI_##Name arguments; }
COLLBENCH_ROWS(COLLBENCH_CALLS)

#define COLLBENCH_STARTS(name, Name, ss, sp, rs, rp, effect, lengths, arguments)                                  \
    static int start_alone_##name(const struct work* w, MPI_Request* request) { return PMPI_##Name arguments; }   \
    static int start_palmette_##name(const struct work* w, MPI_Request* request) { return MPI_##Name arguments; } \
    static int alone_##name(const struct work* w) {                                                               \
        MPI_Request request;                                                                                      \
        const int error = start_alone_##name(w, &request);                                                        \
        return error == MPI_SUCCESS ? PMPI_Wait(&request, MPI_STATUS_IGNORE) : error;                             \
    }                                                                                                             \
    static int palmette_##name(const struct work* w) {                                                            \
        MPI_Request request;                                                                                      \
        const int error = start_palmette_##name(w, &request);                                                     \
        return error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;                              \
    }
COLLBENCH_NONBLOCKING_ROWS(COLLBENCH_STARTS)

#define COLLBENCH_ENTRY(name, Name, ss, sp, rs, rp, effect, lengths, arguments) \
    {#name, ss, sp, rs, rp, effect, lengths, {alone_##name, palmette_##name}, {NULL, NULL}},
#define COLLBENCH_NONBLOCKING_ENTRY(name, Name, ss, sp, rs, rp, effect, lengths, arguments) \
    {#name,                                                                                 \
     ss,                                                                                    \
     sp,                                                                                    \
     rs,                                                                                    \
     rp,                                                                                    \
     effect,                                                                                \
     lengths,                                                                               \
     {alone_##name, palmette_##name},                                                       \
     {start_alone_##name, start_palmette_##name}},
static const struct collective collectives[] = {COLLBENCH_ROWS(COLLBENCH_ENTRY)
                                                    COLLBENCH_NONBLOCKING_ROWS(COLLBENCH_NONBLOCKING_ENTRY)};
enum { COLLECTIVES = sizeof collectives / sizeof collectives[0] };

static const struct collective* find_collective(const char* name) {
    for (int i = 0; i < COLLECTIVES; ++i)
        if (strcmp(collectives[i].name, name) == 0) return &collectives[i];
    return NULL;
}

static bool has_data(const struct collective* c) { return c->send_shape != NOTHING || c->recv_shape != NOTHING; }

/* Bytes of the block from one rank to another; for a block that belongs to a rank, both are that rank. The mean over
 * three neighbours is the size. Sums consist of whole elements. */
static size_t block_bytes(const struct collective* c, size_t size, int from, int to) {
    const size_t unit = c->effect == MOVE ? 1 : sizeof(unsigned), half = size / unit / 2 * unit;
    const int kind = c->lengths == EVEN ? 1 : c->lengths == UNEVEN ? to % 3 : (from + 2 * to) % 3;
    return kind == 0 ? size - half : kind == 1 ? size : size + half;
}

/* A number that depends on all bits of both arguments (the finalizer of splitmix64). */
static uint64_t mixed(uint64_t a, uint64_t b) {
    uint64_t z = a * 0x9e3779b97f4a7c15u + b * 0xd1b54a32d192ed03u + 0x2545f4914f6cdd1du;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Byte i of what `source` sends to `target`; target 0 where all get the same. */
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

static size_t bytes_of_all(const int* counts, const struct work* w) {
    size_t sum = 0;
    for (int r = 0; r < w->ranks; ++r) sum += (size_t)counts[r];
    return sum;
}

/* Bytes of this rank's buffers. */
static size_t send_bytes(const struct collective* c, const struct work* w) {
    if (c->send_shape == NOTHING) return 0;
    return c->send_shape == BLOCK ? (size_t)w->send_counts[w->rank] : bytes_of_all(w->send_counts, w);
}
static size_t recv_bytes(const struct collective* c, const struct work* w) {
    if (c->recv_shape == NOTHING) return 0;
    return c->recv_shape == BLOCK ? (size_t)w->recv_counts[w->rank] : bytes_of_all(w->recv_counts, w);
}

/* Fills the send buffer; for collectives without one, the root's receive buffer. */
static void put_sent(const struct collective* c, const struct work* w) {
    if (!takes_part(c->send_place, w)) return;
    if (c->send_shape == NOTHING) {
        put_block(w->recv, w->rank, 0, recv_bytes(c, w));
    } else if (c->effect != MOVE) {
        put_elements(w->send, weight_of(w->rank), 0, send_bytes(c, w));
    } else if (c->send_shape == BLOCK) {
        put_block(w->send, w->rank, 0, send_bytes(c, w));
    } else {
        for (int r = 0; r < w->ranks; ++r)
            put_block(w->send + w->send_offsets[r], w->rank, r, (size_t)w->send_counts[r]);
    }
}

/* Whether the result of a rank is defined: that of the first rank of an exscan is undefined. */
static bool is_defined(const struct collective* c, const struct work* w) {
    return c->effect != SUM_BEFORE || w->rank > 0;
}

/* Write into `at` what this rank's receive buffer must hold after the call. */
static void put_expected(const struct collective* c, const struct work* w, unsigned char* at) {
    if (!takes_part(c->recv_place, w)) return;
    const int target = c->send_shape == BLOCKS ? w->rank : 0;
    if (c->effect != MOVE) {
        const int end = c->effect == SUM ? w->ranks : c->effect == SUM_TO ? w->rank + 1 : w->rank;
        unsigned weight = 0;
        for (int r = 0; r < end; ++r) weight += weight_of(r);
        const size_t first = c->send_shape == BLOCKS ? (size_t)w->send_offsets[w->rank] / sizeof(unsigned) : 0;
        put_elements(at, weight, first, recv_bytes(c, w));
    } else if (c->recv_shape == BLOCK) {
        put_block(at, w->root, target, recv_bytes(c, w));
    } else if (c->recv_shape == BLOCKS) {
        for (int r = 0; r < w->ranks; ++r) put_block(at + w->recv_offsets[r], r, target, (size_t)w->recv_counts[r]);
    }
}

#endif
