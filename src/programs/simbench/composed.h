/* Runs a collective as a composition via palmette.h, with the factoring of the command line. Unavailable in the program
 * without palmette (SIMBENCH_ALONE). */
#ifndef SIMBENCH_COMPOSED_H
#define SIMBENCH_COMPOSED_H

#include "../collbench/collectives.h"

#ifdef SIMBENCH_ALONE

struct composed {
    char nothing;
};

static const char* compose(struct composed* made, const struct collective* c, const struct work* w,
                           const char* factoring) {
    (void)made, (void)c, (void)w, (void)factoring;
    return "this program is without palmette, and so without compositions";
}

static int call_composed(struct composed* made) {
    (void)made;
    return MPI_ERR_OTHER;
}

static void free_composed(struct composed* made) { (void)made; }

#else

#include "../../palmette/interpose/palmette.h"

struct composed {
    palmette_composition* composition;
    palmette_plan* plan;
    palmette_run* run;
};

/* palmette.h's name of the collective; NULL where it isn't composed here. */
static const char* composition_of(const struct collective* c) {
    static const char* const names[][2] = {{"bcast", "broadcast"},     {"gather", "gather"}, {"scatter", "scatter"},
                                           {"allgather", "allgather"}, {"reduce", "reduce"}, {"allreduce", "allreduce"},
                                           {"alltoall", "alltoall"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
        if (strcmp(c->name, names[i][0]) == 0) return names[i][1];
    return NULL;
}

/* Collective. Returns what went wrong, or NULL. */
static const char* compose(struct composed* made, const struct collective* c, const struct work* w,
                           const char* factoring) {
    const char* name = composition_of(c);
    if (!name) return "no composition of this collective";
    const bool adds = c->effect != MOVE;
    const int64_t count = (int64_t)(adds ? w->size / sizeof(unsigned) : w->size);
    void* buffers[] = {w->send, w->recv};
    const int one = c->send_shape == NOTHING; /* a broadcast only has the second buffer */
    if (palmette_composition_named(name, w->ranks, w->root, &count, 1, adds ? MPI_UNSIGNED : MPI_BYTE, MPI_SUM,
                                   &made->composition) != MPI_SUCCESS ||
        palmette_plan_make(made->composition, w->comm, factoring, &made->plan) != MPI_SUCCESS ||
        palmette_bind(made->plan, buffers + one, 2 - one, &made->run) != MPI_SUCCESS)
        return palmette_error();
    return NULL;
}

static int call_composed(struct composed* made) {
    const int error = palmette_start(made->run);
    return error == MPI_SUCCESS ? palmette_wait(made->run) : error;
}

static void free_composed(struct composed* made) {
    palmette_run_free(made->run);
    palmette_plan_free(made->plan);
    palmette_composition_free(made->composition);
}

#endif

#endif
