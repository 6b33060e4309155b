/* collbench: measures collectives under the MPI alone and under a preloaded library, interleaved in one job.
 *
 * A plain MPI program that knows nothing of palmette: it calls each collective as PMPI_X, which no preloaded library
 * changes, and as MPI_X. Without a preload both are the same, and so must be the times. The time of a call is that of
 * the last rank to finish, from a common start. Every result is verified byte for byte before and after the timing. The
 * output is described in docs/reference/measurements.md. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "collbench"
#include "collbench/cell.h"
#include "collbench/collectives.h"
#include "collbench/device_memory.h"
#include "collbench/options.h"
#include "collbench/output.h"
#include "collbench/overlap.h"
#include "collbench/pass_through.h"
#include "collbench/timing.h"

static const char *const variant_names[] = {"the MPI alone", "the preloaded MPI"};

/* Times of one cell, one entry per pair, by variant; seconds. Valid on rank 0. `start_s`: by CLOCK_MONOTONIC, where it
 * is common to all ranks. */
struct samples {
    double *time_s[2], *late_s[2], *start_s[2];
    bool *palmette_first;
};

/* --- one cell --- */

/* Minimum number of pairs, even of a cell that ran into its time limit. */
enum { fewest_pairs = 3 };

/* Calls both variants once. Returns false when rank 0 ends the cell; else rank 0 gets the slowest rank's times by
 * variant. */
static bool time_pair(const struct collective *c, const struct work *w, struct timing *t, bool palmette_first,
                      bool more, struct call worst[2]) {
    for (int turn = 0; turn < 2; ++turn) {
        const enum variant variant = (turn == 0) == palmette_first ? PALMETTE : ALONE;
        if (t->spin && w->size <= primed_up_to) c->call[variant](w);
        if (!start_together(t, more)) return false;
        c->call[variant](w);
        worst[variant] = finish_together(t);
    }
    return true;
}

/* --- output, by rank 0 --- */

static void put_cell(FILE *out, const struct collective *c, const struct work *w, const struct samples *s, int pairs,
                     const int wrong[2], const struct overlap *overlap, double elapsed_s, const struct timing *t) {
    static const char *const time_names[] = {"alone_s", "palmette_s"};
    static const char *const late_names[] = {"alone_late_s", "palmette_late_s"};
    static const char *const start_names[] = {"alone_start_s", "palmette_start_s"};
    fprintf(out, "{\"event\":\"cell\",\"collective\":\"%s\",\"size_bytes\":%zu,\"root\":%d,\"pairs\":%d", c->name,
            w->size, w->root, pairs);
    if (on_device.memory != HOST)
        fprintf(out, ",\"memory\":\"%s\",\"copies\":%s", memory_names[on_device.memory],
                on_device.copies[ALONE] ? "true" : "false");
    fprintf(out, ",\"elapsed_s\":%.3f,\"window_s\":%.6f", elapsed_s, t->window_s);
    fprintf(out, ",\"wrong_ranks\":{\"alone\":%d,\"palmette\":%d}", wrong[ALONE], wrong[PALMETTE]);
    if (c->lengths != EVEN) {
        /* by rank, or by sender and receiver */
        const char *separator = "";
        fprintf(out, ",\"block_bytes\":[");
        for (int from = 0; from < (c->lengths == PAIRWISE ? ranks : 1); ++from)
            for (int to = 0; to < ranks; ++to, separator = ",")
                fprintf(out, "%s%zu", separator, block_bytes(c, w->size, from, to));
        fputc(']', out);
    }
    if (overlap)
        fprintf(out, ",\"overlap\":{\"computed_s\":%.9f,\"alone\":%.4f,\"palmette\":%.4f}", overlap->computed_s,
                overlap->hidden[ALONE], overlap->hidden[PALMETTE]);
    fprintf(out, ",\"palmette_first\":[");
    for (int i = 0; i < pairs; ++i) fprintf(out, "%s%d", i ? "," : "", s->palmette_first[i]);
    fputc(']', out);
    for (int v = ALONE; v <= PALMETTE; ++v) {
        put_times(out, time_names[v], s->time_s[v], pairs);
        put_times(out, late_names[v], s->late_s[v], pairs);
        if (t->shared_clock) put_times(out, start_names[v], s->start_s[v], pairs);
    }
    fprintf(out, "}\n");
    fflush(out);
}

/* The overlap of a cell whose times without computation were measured before. Collective. */
static struct overlap overlap_of(const struct collective *c, const struct work *w, struct timing *t,
                                 const struct samples *s, int pairs, double seconds) {
    double by_itself_s[2] = {0, 0};
    double *sorted = allocate((size_t)pairs, sizeof(double));
    for (int v = ALONE; v <= PALMETTE && my_rank == 0; ++v) {
        memcpy(sorted, s->time_s[v], (size_t)pairs * sizeof(double));
        by_itself_s[v] = median_of(sorted, pairs);
    }
    free(sorted);
    return measure_overlap(c, w, t, by_itself_s, seconds);
}

/* Measures one cell and writes it. Returns the number of ranks with wrong results, summed over the checks. */
static int run_cell(FILE *out, const struct options *o, const struct collective *c, size_t size, struct timing *t,
                    struct samples *s, uint64_t *random) {
    struct work w = make_work(c, size, o->root);
    const struct collective where = enter_device(c, &w);
    c = &where;
    int wrong[2] = {0, 0};
    on_device.verifying = true;
    for (int v = ALONE; v <= PALMETTE; ++v) wrong[v] += check(c, &w, v, variant_names[v], o->how.shared_clock);
    on_device.verifying = false;
    struct call worst[2];
    const double warm_s = now_s();
    for (int i = 0; i < o->how.warmup; ++i) {
        /* Rank 0 decides here, too: at least one pair, and at most a quarter of the time limit. */
        const bool more = i == 0 || o->limit_s <= 0 || now_s() - warm_s < o->limit_s / 4;
        if (!time_pair(c, &w, t, i % 2, more, worst)) break;
    }
    const double begin_s = now_s();
    int pairs = 0;
    for (int good = 0;; ++pairs) {
        /* Rank 0 decides. Where ranks keep starting late, it stops after four times the requested number of pairs. */
        const bool at_limit = o->limit_s > 0 && pairs >= fewest_pairs && now_s() - warm_s > o->limit_s;
        const bool short_of_pairs = !at_limit && good < o->min_pairs && pairs < 4 * (double)o->min_pairs;
        const bool more = pairs < o->max_pairs && (short_of_pairs || (!at_limit && now_s() - begin_s < o->how.seconds));
        *random = mixed(*random, 1);
        const bool palmette_first = *random >> 63;
        if (!time_pair(c, &w, t, palmette_first, more, worst)) break;
        good += in_time(worst[ALONE]) && in_time(worst[PALMETTE]);
        s->palmette_first[pairs] = palmette_first;
        for (int v = ALONE; v <= PALMETTE; ++v) {
            s->time_s[v][pairs] = worst[v].time_s;
            s->late_s[v][pairs] = worst[v].late_s;
            s->start_s[v][pairs] = worst[v].start_s;
        }
    }
    const double elapsed_s = now_s() - begin_s;
    struct overlap overlap = {0};
    if (c->start[ALONE]) overlap = overlap_of(c, &w, t, s, pairs, o->how.seconds / 2);
    on_device.verifying = true;
    for (int v = ALONE; v <= PALMETTE; ++v) wrong[v] += check(c, &w, v, variant_names[v], o->how.shared_clock);
    if (out) put_cell(out, c, &w, s, pairs, wrong, c->start[ALONE] ? &overlap : NULL, elapsed_s, t);
    leave_device(c, &w);
    free_work(&w);
    return wrong[ALONE] + wrong[PALMETTE];
}

/* Reports a command line error on rank 0 and ends all ranks with status 2 (0 after --help and --list). */
static void explain_and_end(const char *wrong, const char *at, bool list) {
    if (my_rank == 0 && wrong && *wrong)
        fprintf(stderr, "collbench: '%s': %s\n", at, wrong);
    else if (my_rank == 0 && wrong)
        fputs(usage, stdout);
    for (int i = 0; my_rank == 0 && !wrong && list && i < COLLECTIVES; ++i) puts(collectives[i].name);
    MPI_Finalize();
    exit(wrong && *wrong ? 2 : 0);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct options o;
    bool list = false;
    const char *at = "", *wrong = parse_options(&o, argc, argv, &list, &at);
    if (!wrong && o.root >= ranks) at = "--root", wrong = "no such rank in this job";
    static const char needs_words[] = "adds numbers of 4 bytes; its sizes must be multiples of 4";
    for (int i = 0; !wrong && !o.cells && i < o.chosen_count; ++i)
        for (int j = 0; j < o.size_count; ++j)
            if (o.chosen[i]->effect != MOVE && o.sizes[j] % sizeof(unsigned))
                at = o.chosen[i]->name, wrong = needs_words;
    for (int i = 0; !wrong && i < o.cell_count; ++i)
        if (o.cells[i].collective->effect != MOVE && o.cells[i].size % sizeof(unsigned))
            at = o.cells[i].collective->name, wrong = needs_words;
    if (!wrong && o.memory != HOST) at = "--memory", wrong = open_cuda();
    if (wrong || list) explain_and_end(wrong, at, list);
    on_device.memory = o.memory;
    on_device.copies[ALONE] = o.copies;
    on_device.copies[PALMETTE] = o.copies && !palmette_is_loaded(); /* then it is the MPI alone, too */

    FILE *out = open_output(&o.how);
    put_job(out, "collbench", o.how.shared_clock, o.how.seed);
    struct timing timing = timing_of(&o.how);
    struct samples samples = {.palmette_first = allocate((size_t)o.max_pairs, sizeof(bool))};
    for (int v = ALONE; v <= PALMETTE; ++v) {
        samples.time_s[v] = allocate((size_t)o.max_pairs, sizeof(double));
        samples.late_s[v] = allocate((size_t)o.max_pairs, sizeof(double));
        samples.start_s[v] = allocate((size_t)o.max_pairs, sizeof(double));
    }
    uint64_t random = o.how.seed;
    int wrong_ranks = 0;
    for (int i = 0; i < o.cell_count && !o.pass_through; ++i)
        wrong_ranks += run_cell(out, &o, o.cells[i].collective, o.cells[i].size, &timing, &samples, &random);
    for (int i = 0; i < o.chosen_count && !o.pass_through && !o.cells; ++i)
        for (int j = 0; j < (has_data(o.chosen[i]) ? o.size_count : 1); ++j)
            wrong_ranks +=
                run_cell(out, &o, o.chosen[i], has_data(o.chosen[i]) ? o.sizes[j] : 0, &timing, &samples, &random);
    if (o.pass_through) run_passes(out, o.max_pairs, samples.time_s, o.memory != HOST, &random);
    if (out) put_end(out, wrong_ranks);
    if (out && out != stdout) fclose(out);
    MPI_Finalize();
    return wrong_ranks ? 1 : 0;
}
