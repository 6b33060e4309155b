/* composebench: compares composed plans with the MPI's own collectives, interleaved in one job, from a common start.
 *
 * An MPI program that `palmette bench compose` starts under palmette's preload, whose functions palmette.h declares. A
 * round calls the MPI's collective as PMPI_X and each factoring once, in a new random order; every result is verified
 * byte for byte before and after the timing. docs/guide/compose.md says what is reported. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "composebench"
/* Unused functions of collbench's headers. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include "collbench/cell.h"
#include "collbench/output.h"
#include "collbench/sorted.h"
#include "collbench/timing.h"
#pragma GCC diagnostic pop
#include "composebench/options.h"
#include "composebench/plans.h"

enum { MOST_VARIANTS = MOST_FACTORINGS + 1, FIRST_ROUNDS = 3 };

/* The MPI, and each factoring. */
struct candidate {
    const char *name;
    struct composed composed;
    bool dropped;
    int wrong, count;
    double *time_s, *late_s;
};

static struct call time_one(const struct collective *c, const struct work *w, const struct candidate *one, bool is_mpi,
                            struct timing *t) {
    current_run = one->composed.run;
    if (!start_together(t, true)) stop("a call was not started");
    c->call[is_mpi ? ALONE : PALMETTE](w);
    return finish_together(t);
}

static double median_of(const struct candidate *one) {
    double *sorted = allocate((size_t)one->count, sizeof *sorted);
    memcpy(sorted, one->time_s, (size_t)one->count * sizeof *sorted);
    sort(sorted, one->count);
    const double median = one->count ? middle(sorted, one->count) : 0;
    free(sorted);
    return median;
}

/* Rank 0 drops factorings that are far behind; the MPI is never dropped. Collective. */
static void drop_slow(struct candidate *all, int count, double ratio) {
    int dropped[MOST_VARIANTS] = {0};
    if (my_rank == 0) {
        double best = 1e30;
        for (int i = 0; i < count; ++i)
            if (median_of(&all[i]) < best) best = median_of(&all[i]);
        for (int i = 1; i < count; ++i) dropped[i] = all[i].dropped || median_of(&all[i]) > ratio * best;
    }
    PMPI_Bcast(dropped, count, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) all[i].dropped = dropped[i] != 0;
}

static void measure_rounds(const struct options *o, const struct collective *c, const struct work *w,
                           struct candidate *all, int count, struct timing *t, uint64_t *random) {
    double begin_s = now_s();
    for (int round = -o->how.warmup;; ++round) {
        if (round == 0) begin_s = now_s();
        int more = round < o->max_rounds && (round < o->min_rounds || now_s() - begin_s < o->how.seconds);
        PMPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!more) break;
        /* All ranks draw the same order: the seed is the same. */
        int order[MOST_VARIANTS];
        for (int i = 0; i < count; ++i) order[i] = i;
        for (int i = count - 1; i > 0; --i) {
            *random = mixed(*random, 1);
            const int other = (int)(*random % (uint64_t)(i + 1)), kept = order[i];
            order[i] = order[other], order[other] = kept;
        }
        for (int i = 0; i < count; ++i) {
            struct candidate *one = &all[order[i]];
            if (one->dropped) continue;
            const struct call worst = time_one(c, w, one, order[i] == 0, t);
            if (round < 0) continue;
            one->time_s[one->count] = worst.time_s, one->late_s[one->count] = worst.late_s;
            ++one->count;
        }
        if (o->drop > 0 && round + 1 == FIRST_ROUNDS) drop_slow(all, count, o->drop);
    }
}

static void put_cell(FILE *out, const struct compose_cell *cell, const char *collective, int root,
                     const struct candidate *all, int count) {
    fprintf(out, "{\"event\":\"cell\",\"composition\":\"%s\",\"collective\":\"%s\",\"size_bytes\":%zu,\"root\":%d",
            cell->name, collective, cell->size, root);
    fputs(",\"variants\":[", out);
    for (int i = 0; i < count; ++i) {
        const struct candidate *one = &all[i];
        fprintf(out, "%s{\"name\":", i ? "," : "");
        put_text(out, one->name);
        fprintf(out, ",\"wrong_ranks\":%d,\"dropped\":%s,\"made_s\":%.9f,\"scratch_bytes\":%lld", one->wrong,
                one->dropped ? "true" : "false", one->composed.made_s, (long long)one->composed.scratch_bytes);
        put_times(out, "time_s", one->time_s, one->count);
        put_times(out, "late_s", one->late_s, one->count);
        fputc('}', out);
    }
    fputs("]}\n", out);
    fflush(out);
}

/* Collective. Returns the exit status: 1 for wrong results, 2 where plan creation fails. */
static int run_cell(FILE *out, const struct options *o, const struct compose_cell *cell, struct timing *t,
                    uint64_t *random) {
    const struct named *n = find_named(cell->name);
    struct collective c = n ? *find_collective(n->collective) : collectives[0];
    if (!n || (c.effect != MOVE && cell->size % sizeof(unsigned))) {
        if (my_rank == 0)
            fprintf(stderr, PROGRAM ": %s of %zu bytes: %s\n", cell->name, cell->size,
                    n ? "adds numbers of 4 bytes; take a multiple of 4" : "there is no such composition");
        return 2;
    }
    c.call[PALMETTE] = run_current;
    struct work w = make_work(&c, cell->size, o->root);
    const int count = cell->count + 1;
    struct candidate all[MOST_VARIANTS] = {{.name = "MPI"}};
    const char *complaint = NULL;
    int made = 1;
    for (; made < count && !complaint; ++made) {
        all[made].name = cell->factorings[made - 1];
        complaint = make_composed(n, &c, &w, all[made].name, &all[made].composed);
    }
    int status = complaint ? 2 : 0;
    if (complaint && my_rank == 0)
        fprintf(stderr, PROGRAM ": %s with '%s': %s\n", cell->name, all[made - 1].name, complaint);
    for (int i = 0; i < count; ++i) {
        all[i].time_s = allocate((size_t)o->max_rounds, sizeof(double));
        all[i].late_s = allocate((size_t)o->max_rounds, sizeof(double));
    }
    for (int time = 0; time < 2 && status < 2; ++time) {
        for (int i = 0; i < count; ++i) {
            current_run = all[i].composed.run;
            all[i].wrong += check(&c, &w, i == 0 ? ALONE : PALMETTE, all[i].name, o->how.shared_clock);
            if (all[i].wrong) status = 1;
        }
        if (time == 0) measure_rounds(o, &c, &w, all, count, t, random);
    }
    if (out && status < 2) put_cell(out, cell, n->collective, o->root, all, count);
    for (int i = 0; i < count; ++i) {
        free(all[i].time_s), free(all[i].late_s);
        if (i > 0 && i < made) free_composed(&all[i].composed);
    }
    free_work(&w);
    return status;
}

/* Pays the one-time cost of the first plan on a communicator outside of the cells. Collective. */
static void prepare_communicator(void) {
    const int64_t count = 1;
    palmette_composition *none = NULL;
    palmette_plan *plan = NULL;
    palmette_composition_named("broadcast", ranks, 0, &count, 1, MPI_BYTE, MPI_SUM, &none);
    palmette_plan_make(none, MPI_COMM_WORLD, "", &plan);
    palmette_plan_free(plan);
    palmette_composition_free(none);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct options *o = allocate(1, sizeof *o);
    const char *at = "", *wrong = parse_options(o, argc, argv, &at);
    if (!wrong && o->root >= ranks) at = "--root", wrong = "no such rank in this job";
    if (!wrong && !palmette_plan_make) at = PROGRAM, wrong = "palmette isn't loaded; start it under palmette run";
    if (wrong) {
        if (my_rank == 0 && *wrong) fprintf(stderr, PROGRAM ": '%s': %s\n", at, wrong);
        if (my_rank == 0 && !*wrong) fputs(usage, stdout);
        MPI_Finalize();
        return *wrong ? 2 : 0;
    }
    FILE *out = open_output(&o->how);
    put_job(out, PROGRAM, o->how.shared_clock, o->how.seed);
    prepare_communicator();
    struct timing timing = timing_of(&o->how);
    uint64_t random = o->how.seed;
    int status = 0;
    for (int i = 0; i < o->cell_count && status < 2; ++i) {
        const int now = run_cell(out, o, &o->cells[i], &timing, &random);
        status = now > status ? now : status;
    }
    if (out && status < 2) fprintf(out, "{\"event\":\"end\"}\n");
    if (out && out != stdout) fclose(out);
    free(o);
    MPI_Finalize();
    return status;
}
