/* tune: compares algorithms of palmette with each other and with the MPI alone, interleaved in one job.
 *
 * For each candidate of a cell the program forces the algorithm (palmette_force, found in the preloaded library),
 * duplicates the world and calls the collective there, which creates and caches the plan. Each round calls all
 * remaining candidates in random order; the time of a call is that of the last rank to finish, from a common start.
 * Every candidate's result is verified byte for byte before and after. Candidates that are far behind are dropped.
 * Its output is a JSON object a line, which palmette/tune reads. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "tune"
#include "collbench/cell.h"
#include "collbench/collectives.h"
#include "collbench/output.h"
#include "collbench/timing.h"
#include "tune/cells.h"
#include "tune/field.h"
#include "tune/options.h"

static int (*force)(const char *function, const char *spec);
static long long (*served_calls)(const char *function);

/* POSIX allows function pointers from dlsym; ISO C needs this cast. */
static void find_control(void) {
    *(void **)&force = dlsym(RTLD_DEFAULT, "palmette_force");
    *(void **)&served_calls = dlsym(RTLD_DEFAULT, "palmette_served_calls");
    int found = force && served_calls, everywhere = 0;
    PMPI_Allreduce(&found, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!everywhere) force = NULL;
}

static enum variant variant_of(const struct candidate *c) { return c->is_mpi ? ALONE : PALMETTE; }

/* The slowest rank's time of one call, on rank 0. Collective. */
static struct call time_call(const struct collective *c, struct work *w, const struct candidate *candidate,
                             struct timing *t) {
    w->comm = candidate->comm;
    const enum variant variant = variant_of(candidate);
    if (t->spin && w->size <= primed_up_to) c->call[variant](w);
    start_together(t, true);
    c->call[variant](w);
    return finish_together(t);
}

static int check_candidate(const struct collective *c, struct work *w, const struct candidate *candidate,
                           const struct options *o) {
    w->comm = candidate->comm;
    return check(c, w, variant_of(candidate), candidate->text, o->how.shared_clock);
}

/* Creates a communicator on which the candidate is selected. Collective. */
static void open_candidate(struct candidate *candidate, const struct collective *c, char *text, int max_rounds) {
    *candidate = (struct candidate){.text = text, .comm = MPI_COMM_WORLD};
    candidate->is_mpi = strcmp(text, "mpi") == 0;
    candidate->is_table = strcmp(text, "table") == 0;
    candidate->active = true;
    if (my_rank == 0) {
        candidate->time_s = allocate((size_t)max_rounds, sizeof(double));
        candidate->late_s = allocate((size_t)max_rounds, sizeof(double));
    }
    if (candidate->is_mpi) return;
    if (!force)
        candidate->refused = "palmette isn't preloaded";
    else if (force(c->name, candidate->is_table ? "" : text) != 0)
        candidate->refused = "no algorithm of this collective, or wrong keys";
    if (candidate->refused)
        candidate->active = false;
    else
        PMPI_Comm_dup(MPI_COMM_WORLD, &candidate->comm);
}

/* Whether a candidate is to be dropped after one slow call; rank 0 decides, by the fastest call of the other
 * candidates. Collective. */
static bool is_too_slow(const struct candidate *candidate, double time_s, double best_s) {
    int too_slow = my_rank == 0 && !candidate->is_table && time_s > 8 * best_s && time_s > 20e-3;
    PMPI_Bcast(&too_slow, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return too_slow;
}

/* First calls of a candidate: finds out whether palmette serves it, and verifies the result. The first call may create
 * the plan and shared memory: only a second one can drop a candidate. Collective. */
static void warm_up(struct candidate *candidate, const struct collective *c, struct work *w, struct timing *t,
                    const struct options *o, double *best_s) {
    const long long before = candidate->is_mpi ? 0 : served_calls(c->name);
    double time_s = time_call(c, w, candidate, t).time_s;
    candidate->served = !candidate->is_mpi && served_calls(c->name) > before;
    bool go_on = !is_too_slow(candidate, time_s, *best_s);
    if (!go_on) {
        time_s = time_call(c, w, candidate, t).time_s;
        go_on = !is_too_slow(candidate, time_s, *best_s);
    }
    if (my_rank == 0 && time_s < *best_s) *best_s = time_s;
    if (!go_on) candidate->refused = "its first calls took 8 times as long as another's";
    if (!candidate->served && !candidate->is_mpi && !candidate->is_table) {
        go_on = false;
        candidate->refused = "palmette leaves it to the MPI here: a precondition doesn't hold";
    }
    candidate->active = go_on;
    if (!go_on) return;
    candidate->wrong += check_candidate(c, w, candidate, o);
    for (int i = 0; i < (candidate->is_mpi ? 6 : o->how.warmup); ++i) time_call(c, w, candidate, t);
}

/* --- output, by rank 0 --- */

static void put_cell(FILE *out, const struct cell *cell, const struct candidate *field, double elapsed_s) {
    fprintf(out, "{\"event\":\"cell\",\"collective\":\"%s\",\"size_bytes\":%zu,\"root\":%d,\"elapsed_s\":%.3f",
            cell->collective->name, cell->size, cell->root, elapsed_s);
    fprintf(out, ",\"candidates\":[");
    for (int i = 0; i < cell->count; ++i) {
        const struct candidate *c = &field[i];
        fprintf(out, "%s{\"spec\":", i ? "," : "");
        put_text(out, c->text);
        fprintf(out, ",\"served\":%s,\"wrong_ranks\":%d,\"kept\":%s,\"refused\":", c->served ? "true" : "false",
                c->wrong, c->active ? "true" : "false");
        if (c->refused)
            put_text(out, c->refused);
        else
            fprintf(out, "null");
        put_times(out, "time_s", c->time_s, c->rounds);
        put_times(out, "late_s", c->late_s, c->rounds);
        fputc('}', out);
    }
    fprintf(out, "]}\n");
    fflush(out);
}

/* --- a cell --- */

/* Broadcasts the active candidates. Returns whether there is one more round, as rank 0 decides. */
static bool agree_on_round(struct candidate *field, int count, bool more) {
    char states[MOST_CANDIDATES + 1];
    for (int i = 0; i < count; ++i) states[i] = field[i].active;
    states[count] = more;
    PMPI_Bcast(states, count + 1, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) field[i].active = states[i];
    return states[count];
}

/* Measures a cell until `end_s`, or at least minimally, and writes it. Returns the number of ranks with wrong results,
 * summed over the checks. */
static int run_cell(FILE *out, const struct options *o, struct cell *cell, struct timing *t, double end_s,
                    uint64_t *random) {
    const struct collective *c = cell->collective;
    const double begin_s = now_s();
    struct work w = make_work(c, cell->size, cell->root);
    struct candidate *field = allocate((size_t)cell->count, sizeof *field);
    double best_s = 1e9, *scratch = allocate((size_t)o->max_rounds, sizeof(double));
    for (int i = 0; i < cell->count; ++i) {
        open_candidate(&field[i], c, cell->candidates[i], o->max_rounds);
        int late = my_rank == 0 && i > 2 && now_s() - begin_s > 0.5 * (end_s - begin_s);
        PMPI_Bcast(&late, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (late) field[i].active = false, field[i].refused = "no time was left for it";
        if (field[i].active) warm_up(&field[i], c, &w, t, o, &best_s);
    }
    if (force) force(c->name, "");
    int order[MOST_CANDIDATES];
    for (int round = 0;; ++round) {
        const bool more = round < o->max_rounds && now_s() < end_s;
        if (!agree_on_round(field, cell->count, more)) break;
        const int active = draw_order(field, cell->count, random, order);
        for (int i = 0; i < active; ++i) {
            struct candidate *candidate = &field[order[i]];
            const struct call worst = time_call(c, &w, candidate, t);
            if (my_rank == 0) {
                candidate->time_s[round] = worst.time_s;
                candidate->late_s[round] = worst.late_s;
            }
            candidate->rounds = round + 1;
        }
        if (my_rank == 0 && !o->keep_all) drop_slow(field, cell->count, round + 1, scratch);
    }
    int wrong = 0;
    for (int i = 0; i < cell->count; ++i) {
        if (field[i].active) field[i].wrong += check_candidate(c, &w, &field[i], o);
        wrong += field[i].wrong;
    }
    if (out) put_cell(out, cell, field, now_s() - begin_s);
    for (int i = 0; i < cell->count; ++i) {
        if (field[i].comm != MPI_COMM_WORLD) MPI_Comm_free(&field[i].comm);
        free(field[i].time_s);
        free(field[i].late_s);
    }
    free(field);
    free(scratch);
    free_work(&w);
    return wrong;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct options o;
    const char *at = "", *wrong = parse_options(&o, argc, argv, &at);
    if (wrong) {
        if (my_rank == 0 && *wrong) fprintf(stderr, "tune: '%s': %s\n", at, wrong);
        if (my_rank == 0 && !*wrong) fputs(usage, stdout);
        MPI_Finalize();
        return *wrong ? 2 : 0;
    }
    FILE *out = open_output(&o.how);
    const double begin_s = now_s();
    find_control();
    put_job(out, "palmette-tune", o.how.shared_clock, o.how.seed);
    int count = 0, wrong_ranks = 0;
    char *text = o.cells ? read_everywhere(o.cells) : NULL;
    struct cell *cells = text ? read_cells(o.cells, text, &count) : NULL;
    struct timing timing = timing_of(&o.how);
    uint64_t random = o.how.seed;
    for (int i = 0; i < count; ++i) {
        /* The remaining time is divided evenly among the remaining cells. Rank 0's clock counts. */
        const double left_s = o.how.seconds - (now_s() - begin_s);
        int go_on = i == 0 || left_s > 0;
        PMPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!go_on) break;
        wrong_ranks += run_cell(out, &o, &cells[i], &timing, now_s() + left_s / (count - i), &random);
    }
    if (out) put_end(out, wrong_ranks);
    if (out && out != stdout) fclose(out);
    free(cells);
    free(text);
    MPI_Finalize();
    return wrong_ranks ? 1 : 0;
}
