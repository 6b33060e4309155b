/* Overhead of calls that a preloaded library passes through: the same call in tight loops as PMPI_X and as MPI_X,
 * alternating. */
#ifndef COLLBENCH_PASS_THROUGH_H
#define COLLBENCH_PASS_THROUGH_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "collectives.h"
#include "timing.h"

struct pass_through {
    const char *function, *where;
    int calls; /* a loop */
    int (*call[2])(unsigned char* buffer);
};

#define COLLBENCH_PASS_CALLS(name, Name, arguments)                                           \
    static int pass_alone_##name(unsigned char* b) { return (void)b, PMPI_##Name arguments; } \
    static int pass_palmette_##name(unsigned char* b) { return (void)b, MPI_##Name arguments; }
COLLBENCH_PASS_CALLS(barrier_self, Barrier, (MPI_COMM_SELF))
COLLBENCH_PASS_CALLS(barrier, Barrier, (MPI_COMM_WORLD))
COLLBENCH_PASS_CALLS(bcast, Bcast, (b, 8, MPI_BYTE, 0, MPI_COMM_WORLD))
COLLBENCH_PASS_CALLS(allreduce, Allreduce, (b, b + 8, 2, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD))

static const struct pass_through passes[] = {
    {"barrier", "MPI_COMM_SELF", 100000, {pass_alone_barrier_self, pass_palmette_barrier_self}},
    {"barrier", "MPI_COMM_WORLD", 2000, {pass_alone_barrier, pass_palmette_barrier}},
    {"bcast", "MPI_COMM_WORLD, 8 bytes", 2000, {pass_alone_bcast, pass_palmette_bcast}},
    {"allreduce", "MPI_COMM_WORLD, 8 bytes", 2000, {pass_alone_allreduce, pass_palmette_allreduce}},
};
enum { PASSES = sizeof passes / sizeof passes[0] };

/* With a GPU's driver loaded: a buffer that was seen before, and one in another page in each call. */
enum { PAGES = 4096, PAGE = 4096 };
static unsigned char* next_page(unsigned char* pages) {
    static unsigned at;
    return pages + (size_t)(at++ % PAGES) * PAGE;
}
COLLBENCH_PASS_CALLS(bcast_self, Bcast, (b, 8, MPI_BYTE, 0, MPI_COMM_SELF))
COLLBENCH_PASS_CALLS(bcast_pages, Bcast, (next_page(b), 8, MPI_BYTE, 0, MPI_COMM_SELF))
static const struct pass_through driver_passes[] = {
    {"bcast", "MPI_COMM_SELF, 8 bytes", 100000, {pass_alone_bcast_self, pass_palmette_bcast_self}},
    {"bcast", "MPI_COMM_SELF, 8 bytes, other pages", 20000, {pass_alone_bcast_pages, pass_palmette_bcast_pages}},
};
enum { DRIVER_PASSES = sizeof driver_passes / sizeof driver_passes[0] };

/* Nanoseconds a call of one loop on this rank; no loop takes longer than 50 ms unless oversubscribed. */
static double loop_ns(const struct pass_through* p, enum variant variant, int calls, unsigned char* buffer) {
    PMPI_Barrier(MPI_COMM_WORLD);
    int (*const call)(unsigned char*) = p->call[variant];
    const double begin_s = now_s();
    for (int i = 0; i < calls; ++i) call(buffer);
    return (now_s() - begin_s) * 1e9 / calls;
}

/* Measure and write one event for each call, on rank 0. Collective. `alone_ns` and `palmette_ns` hold `rounds` values.
 * `driver`: more calls, whose buffers a GPU's driver may be asked about. */
static void run_passes(FILE* out, int rounds, double* const ns[2], bool driver, uint64_t* random) {
    unsigned char* buffer = allocate(PAGES, PAGE);
    for (int i = 0; i < PASSES + (driver ? DRIVER_PASSES : 0); ++i) {
        const struct pass_through* p = i < PASSES ? &passes[i] : &driver_passes[i - PASSES];
        /* With oversubscribed cores a call can take a thousand times as long: fewer calls then. */
        double first_ns = loop_ns(p, ALONE, 100, buffer);
        PMPI_Bcast(&first_ns, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        const double fitting = 50e6 / (first_ns > 1 ? first_ns : 1);
        const int calls = fitting < 20 ? 20 : fitting < p->calls ? (int)fitting : p->calls;
        loop_ns(p, PALMETTE, 100, buffer);
        for (int round = 0; round < rounds; ++round) {
            *random = mixed(*random, 1);
            for (int turn = 0; turn < 2; ++turn) {
                /* All ranks draw the same order: the seed is the same. */
                const enum variant variant = (turn == 0) == (bool)(*random >> 63) ? PALMETTE : ALONE;
                ns[variant][round] = loop_ns(p, variant, calls, buffer);
            }
        }
        if (!out) continue;
        fprintf(out, "{\"event\":\"pass_through\",\"function\":\"%s\",\"where\":\"%s\",\"calls\":%d", p->function,
                p->where, calls);
        static const char* const names[] = {"alone_ns", "palmette_ns"};
        for (int v = ALONE; v <= PALMETTE; ++v) {
            fprintf(out, ",\"%s\":[", names[v]);
            for (int round = 0; round < rounds; ++round) fprintf(out, "%s%.3f", round ? "," : "", ns[v][round]);
            fputc(']', out);
        }
        fprintf(out, "}\n");
        fflush(out);
    }
    free(buffer);
}

#endif
