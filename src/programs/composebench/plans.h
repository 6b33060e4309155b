/* The plans of one cell: the composition equivalent to an MPI collective, factored and bound to the cell's buffers. */
#ifndef COMPOSEBENCH_PLANS_H
#define COMPOSEBENCH_PLANS_H

#include <stdint.h>
#include <string.h>

#include "palmette/interpose/palmette.h"

/* Weak symbols, defined by the preload; null without it. */
#pragma weak palmette_error
#pragma weak palmette_composition_named
#pragma weak palmette_composition_free
#pragma weak palmette_plan_make
#pragma weak palmette_plan_buffer_bytes
#pragma weak palmette_plan_scratch_bytes
#pragma weak palmette_plan_free
#pragma weak palmette_bind
#pragma weak palmette_start
#pragma weak palmette_wait
#pragma weak palmette_run_free

/* The equivalent collective of collbench, and the number of buffers. */
static const struct named {
    const char *composition, *collective;
    int buffers;
} named_compositions[] = {{"gather", "gather", 2},
                          {"scatter", "scatter", 2},
                          {"broadcast", "bcast", 1},
                          {"broadcast_scatter_allgather", "bcast", 1},
                          {"reduce", "reduce", 2},
                          {"reduce_scatter_gather", "reduce", 3},
                          {"alltoall", "alltoall", 2},
                          {"allgather", "allgather", 2},
                          {"reduce_scatter", "reduce_scatter_block", 2},
                          {"allreduce", "allreduce", 2},
                          {"allreduce_reduce_broadcast", "allreduce", 2}};

static const struct named* find_named(const char* name) {
    for (size_t i = 0; i < sizeof named_compositions / sizeof named_compositions[0]; ++i)
        if (strcmp(named_compositions[i].composition, name) == 0) return &named_compositions[i];
    return NULL;
}

struct composed {
    palmette_plan* plan;
    palmette_run* run;
    void* part;            /* a buffer that the collective doesn't have */
    double made_s;         /* the slowest rank's time of plan creation; valid on rank 0 */
    int64_t scratch_bytes; /* the maximum over ranks; valid on rank 0 */
};

/* Collective. Returns NULL, or palmette's error message; the same kind on all ranks. */
static const char* make_composed(const struct named* n, const struct collective* c, const struct work* w,
                                 const char* factoring, struct composed* out) {
    memset(out, 0, sizeof *out);
    const int sums = c->effect != MOVE;
    const int64_t count = sums ? w->elements : w->count;
    palmette_composition* made = NULL;
    if (palmette_composition_named(n->composition, w->ranks, w->root, &count, 1, sums ? MPI_UNSIGNED : MPI_BYTE,
                                   MPI_SUM, &made) != MPI_SUCCESS)
        return palmette_error();
    PMPI_Barrier(w->comm);
    const double begin_s = now_s();
    const int code = palmette_plan_make(made, w->comm, factoring, &out->plan);
    double mine_s = now_s() - begin_s;
    palmette_composition_free(made);
    if (code != MPI_SUCCESS) return palmette_error();
    int64_t scratch = 0, bytes = 0;
    palmette_plan_scratch_bytes(out->plan, &scratch);
    PMPI_Reduce(&mine_s, &out->made_s, 1, MPI_DOUBLE, MPI_MAX, 0, w->comm);
    PMPI_Reduce(&scratch, &out->scratch_bytes, 1, MPI_INT64_T, MPI_MAX, 0, w->comm);
    if (n->buffers == 3) palmette_plan_buffer_bytes(out->plan, 2, &bytes);
    out->part = allocate((size_t)bytes + 1, 1);
    void* buffers[] = {n->buffers == 1 ? w->recv : w->send, w->recv, out->part};
    if (palmette_bind(out->plan, buffers, n->buffers, &out->run) != MPI_SUCCESS) return palmette_error();
    return NULL;
}

static void free_composed(struct composed* c) {
    palmette_run_free(c->run);
    palmette_plan_free(c->plan);
    free(c->part);
}

/* Called by collbench's check in place of the preloaded MPI. */
static palmette_run* current_run;
static int run_current(const struct work* w) {
    (void)w;
    const int code = palmette_start(current_run);
    return code == MPI_SUCCESS ? palmette_wait(current_run) : code;
}

#endif
