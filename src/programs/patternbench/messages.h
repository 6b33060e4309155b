/* The messages of a pattern: a file that rank 0 reads; each rank gets its own messages.
 *
 *     palmette-pattern 1 RANKS STEPS CLASSES MESSAGES
 *     STEP CLASS LIBRARY SOURCE TARGET BYTES SOURCE_AT TARGET_AT ORIGIN ORIGIN_AT     (a line for each message)
 *
 * Each rank has one buffer; _AT are offsets in it. A message carries the bytes that `origin` initially had at
 * `origin_at`, which its target verifies. Steps are sequential on each rank; messages of a class are timed together. */
#ifndef PATTERNBENCH_MESSAGES_H
#define PATTERNBENCH_MESSAGES_H

#include <inttypes.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum library { BY_MPI, BY_RMA, BY_SHARED_MEMORY, BY_SINGLE_COPY, LIBRARIES };

struct message {
    int32_t number; /* in the file */
    int32_t step, class, library, source, target;
    int32_t tag;  /* unique among messages between the same two ranks */
    int32_t slot; /* index among the intra-node shared-memory messages of the target */
    int64_t bytes, source_at, target_at, origin_at;
    int32_t origin;
    int32_t padding;
};

struct pattern {
    int steps, classes, messages; /* of all ranks */
    struct message* own;          /* those that this rank sends or receives, by step */
    int own_count;
};

/* What is wrong with a file, in words; NULL: nothing. Only on rank 0. */
static const char* read_messages(const char* path, int size, struct pattern* p, struct message** all) {
    FILE* file = fopen(path, "r");
    if (!file) return "can't be read";
    int version = 0, for_ranks = 0;
    const char* wrong = NULL;
    if (fscanf(file, "palmette-pattern %d %d %d %d %d", &version, &for_ranks, &p->steps, &p->classes, &p->messages) !=
            5 ||
        version != 1 || p->steps < 1 || p->classes < 1 || p->messages < 0)
        wrong = "is no pattern of this version";
    else if (for_ranks != size)
        wrong = "is for another number of ranks";
    *all = wrong ? NULL : calloc((size_t)p->messages + 1, sizeof **all);
    if (!wrong && !*all) wrong = "has too many messages for the memory of rank 0";
    int32_t* slots = wrong ? NULL : calloc((size_t)size, sizeof *slots);
    for (int i = 0; !wrong && i < p->messages; ++i) {
        struct message* m = &(*all)[i];
        const int found = fscanf(file,
                                 "%" SCNd32 " %" SCNd32 " %" SCNd32 " %" SCNd32 " %" SCNd32 " %" SCNd64 " %" SCNd64
                                 " %" SCNd64 " %" SCNd32 " %" SCNd64,
                                 &m->step, &m->class, &m->library, &m->source, &m->target, &m->bytes, &m->source_at,
                                 &m->target_at, &m->origin, &m->origin_at);
        m->number = i;
        if (found != 10)
            wrong = "ends too early";
        else if (m->step < 0 || m->step >= p->steps || m->class < 0 || m->class >= p->classes || m->library < 0 ||
                 m->library >= LIBRARIES || m->source < 0 || m->source >= size || m->target < 0 || m->target >= size ||
                 m->bytes < 1 || m->bytes > INT32_MAX || m->source_at < 0 || m->target_at < 0 || m->origin < 0 ||
                 m->origin >= size || (i > 0 && m->step < (*all)[i - 1].step))
            wrong = "has a message that can't be";
        else if (m->library == BY_SHARED_MEMORY || m->library == BY_SINGLE_COPY)
            m->slot = slots[m->target]++;
    }
    free(slots);
    fclose(file);
    return wrong;
}

static int by_pair(const void* a, const void* b) {
    const struct message *x = a, *y = b;
    if (x->source != y->source) return x->source < y->source ? -1 : 1;
    if (x->target != y->target) return x->target < y->target ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}
static int by_number(const void* a, const void* b) {
    const struct message *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Collective. Returns the same on all ranks: NULL, or what is wrong. */
static const char* share_messages(const char* path, int rank, int size, struct pattern* p) {
    struct message* all = NULL;
    const char* wrong = rank == 0 ? read_messages(path, ranks, p, &all) : NULL;
    int head[4] = {wrong != NULL, p->steps, p->classes, p->messages};
    PMPI_Bcast(head, 4, MPI_INT, 0, MPI_COMM_WORLD);
    if (head[0]) return rank == 0 ? wrong : "";
    p->steps = head[1], p->classes = head[2], p->messages = head[3];
    int *counts = NULL, *offsets = NULL;
    struct message* sorted = NULL;
    if (rank == 0) {
        qsort(all, (size_t)p->messages, sizeof *all, by_pair);
        for (int i = 1; i < p->messages; ++i)
            if (all[i].source == all[i - 1].source && all[i].target == all[i - 1].target)
                all[i].tag = all[i - 1].tag + 1;
        qsort(all, (size_t)p->messages, sizeof *all, by_number);
        counts = calloc((size_t)size, sizeof *counts), offsets = calloc((size_t)size + 1, sizeof *offsets);
        sorted = calloc(2 * (size_t)p->messages + 1, sizeof *sorted);
        if (!counts || !offsets || !sorted) {
            fprintf(stderr, "patternbench: no memory for %d messages; take fewer\n", p->messages);
            PMPI_Abort(MPI_COMM_WORLD, 2);
        }
        for (int i = 0; i < p->messages; ++i) {
            ++counts[all[i].source];
            if (all[i].target != all[i].source) ++counts[all[i].target];
        }
        for (int r = 0; r < size; ++r) offsets[r + 1] = offsets[r] + counts[r], counts[r] = 0;
        for (int i = 0; i < p->messages; ++i) {
            sorted[offsets[all[i].source] + counts[all[i].source]++] = all[i];
            if (all[i].target != all[i].source) sorted[offsets[all[i].target] + counts[all[i].target]++] = all[i];
        }
    }
    PMPI_Scatter(counts, 1, MPI_INT, &p->own_count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    p->own = calloc((size_t)p->own_count + 1, sizeof *p->own);
    MPI_Datatype type;
    PMPI_Type_contiguous((int)sizeof(struct message), MPI_BYTE, &type);
    PMPI_Type_commit(&type);
    PMPI_Scatterv(sorted, counts, offsets, type, p->own, p->own_count, type, 0, MPI_COMM_WORLD);
    PMPI_Type_free(&type);
    free(all), free(sorted), free(counts), free(offsets);
    return NULL;
}

#endif
