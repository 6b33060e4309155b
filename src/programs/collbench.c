/* collbench: the time of collectives under the MPI alone and under whatever is preloaded, in turns in one job.
 *
 * A plain MPI program that knows nothing of palmette: it calls each collective as PMPI_X, which no preloaded library changes,
 * and as MPI_X. Without a preload both are the same, and so must be the times. The time of a call is that of the last rank
 * to finish, counted from a start that all ranks share. Every result is checked byte for byte before and after the timing.
 * The output is described in docs/guide/bench.md. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collbench/collectives.h"
#include "collbench/options.h"
#include "collbench/overlap.h"
#include "collbench/pass_through.h"
#include "collbench/timing.h"

enum { GUARD = 64, UNTOUCHED = 0x5a, NAME_BYTES = 128 };

static int my_rank, ranks;
static const char *const variant_names[] = {"the MPI alone", "the preloaded MPI"};

/* Times of one cell, an entry a pair, by variant; seconds. Rank 0's count. */
struct samples {
    double *time_s[2], *late_s[2];
    bool *palmette_first;
};

static void stop(const char *form, ...) {
    va_list list;
    va_start(list, form);
    fprintf(stderr, "collbench: rank %d: ", my_rank);
    vfprintf(stderr, form, list);
    fputc('\n', stderr);
    va_end(list);
    PMPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static void *room(size_t count, size_t bytes) {
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory) stop("no memory for %zu bytes; take smaller sizes or fewer ranks", count * bytes);
    return memory;
}

/* --- one cell --- */

static struct work make_work(const struct collective *c, size_t size, int root) {
    struct work w = {.rank = my_rank,
                     .ranks = ranks,
                     .root = root,
                     .size = size,
                     .count = (int)size,
                     .elements = (int)(size / sizeof(unsigned))};
    int **const lists[] = {&w.send_counts, &w.send_offsets, &w.recv_counts, &w.recv_offsets, &w.element_counts};
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

static void free_work(struct work *w) {
    int *const lists[] = {w->send_counts, w->send_offsets, w->recv_counts, w->recv_offsets, w->element_counts};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; ++i) free(lists[i]);
    free(w->types);
    free(w->send);
    free(w->recv);
}

/* Let the last rank come late to a barrier. Returns whether this rank left before that one came; clocks must be the same. */
static bool leaves_early(const struct collective *c, const struct work *w, enum variant variant, int *error) {
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
static int check(const struct collective *c, const struct work *w, enum variant variant, bool shared_clock) {
    const size_t bytes = recv_bytes(c, w) + GUARD;
    unsigned char *expected = room(1, bytes);
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
        fprintf(stderr, "collbench: %s under %s: rank %d left before rank %d came\n", c->name, variant_names[variant],
                my_rank, ranks - 1);
    else if (lowest == my_rank && at < bytes)
        fprintf(stderr,
                "collbench: %s of %zu bytes under %s: rank %d, byte %zu of %zu received: 0x%02x, expected 0x%02x\n",
                c->name, w->size, variant_names[variant], my_rank, at, bytes - GUARD, w->recv[at], expected[at]);
    else if (lowest == my_rank)
        fprintf(stderr, "collbench: %s of %zu bytes under %s: rank %d got MPI error %d\n", c->name, w->size,
                variant_names[variant], my_rank, error);
    free(expected);
    return wrong;
}

/* What ranks agree on before and after each call goes through PMPI_Bcast and PMPI_Reduce. Short calls of the MPI alone would find
 * their code and memory warm and palmette's not: they follow one of their own variant that isn't timed. */
enum { primed_up_to = 64 << 10 };

/* Even a cell that ran into its limit has so many. */
enum { fewest_pairs = 3 };

/* Call both variants once. Returns false when rank 0 wants no more; else rank 0 has the slowest rank's times by variant. */
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

static void put_text(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text && *text != '\n'; ++text) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        if ((unsigned char)*text >= ' ') fputc(*text, out);
    }
    fputc('"', out);
}

static void put_times(FILE *out, const char *name, const double *values, int count) {
    fprintf(out, ",\"%s\":[", name);
    for (int i = 0; i < count; ++i) fprintf(out, "%s%.9f", i ? "," : "", values[i]);
    fputc(']', out);
}

static void put_cell(FILE *out, const struct collective *c, const struct work *w, const struct samples *s, int pairs,
                     const int wrong[2], const struct overlap *overlap, double elapsed_s, double window_s) {
    static const char *const time_names[] = {"alone_s", "palmette_s"}, *const late_names[] = {"alone_late_s",
                                                                                              "palmette_late_s"};
    fprintf(out, "{\"event\":\"cell\",\"collective\":\"%s\",\"size_bytes\":%zu,\"root\":%d,\"pairs\":%d", c->name,
            w->size, w->root, pairs);
    fprintf(out, ",\"elapsed_s\":%.3f,\"window_s\":%.6f", elapsed_s, window_s);
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
    }
    fprintf(out, "}\n");
    fflush(out);
}

/* Whether a library of palmette's is mapped into this process. */
static bool palmette_is_loaded(void) {
    static const char *const names[] = {"/libpalmette_mpich.so", "/libpalmette_ompi.so", "/libpalmette_abi.so"};
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    bool found = false;
    while (maps && fgets(line, sizeof line, maps))
        for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) found = found || strstr(line, names[i]);
    if (maps) fclose(maps);
    return found;
}

/* What the job is: which MPI, which host each rank is on, and on how many ranks palmette is loaded. Collective. */
static void put_job(FILE *out, const struct options *o) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "", name[MPI_MAX_PROCESSOR_NAME] = "", mine[NAME_BYTES] = "";
    int length, loaded = palmette_is_loaded(), loaded_on = 0;
    PMPI_Get_library_version(version, &length);
    PMPI_Get_processor_name(name, &length);
    memcpy(mine, name, (size_t)length < NAME_BYTES ? (size_t)length : NAME_BYTES - 1);
    char *hosts = room((size_t)ranks, NAME_BYTES);
    PMPI_Gather(mine, NAME_BYTES, MPI_CHAR, hosts, NAME_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
    PMPI_Reduce(&loaded, &loaded_on, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (out) {
        fprintf(out,
                "{\"event\":\"job\",\"format\":\"collbench\",\"version\":1,\"ranks\":%d,\"clock\":\"%s\",\"seed\":%llu",
                ranks, o->shared_clock ? "shared" : "barrier", (unsigned long long)o->seed);
        fprintf(out, ",\"palmette_on_ranks\":%d,\"mpi\":", loaded_on);
        put_text(out, version);
        fprintf(out, ",\"hosts\":[");
        for (int r = 0; r < ranks; ++r) {
            if (r) fputc(',', out);
            put_text(out, hosts + (size_t)r * NAME_BYTES);
        }
        fprintf(out, "]}\n");
        fflush(out);
    }
    free(hosts);
}

/* The overlap of a cell that was measured by itself before. Collective. */
static struct overlap overlap_of(const struct collective *c, const struct work *w, struct timing *t,
                                 const struct samples *s, int pairs, double seconds) {
    double by_itself_s[2] = {0, 0};
    double *sorted = room((size_t)pairs, sizeof(double));
    for (int v = ALONE; v <= PALMETTE && my_rank == 0; ++v) {
        memcpy(sorted, s->time_s[v], (size_t)pairs * sizeof(double));
        by_itself_s[v] = median_of(sorted, pairs);
    }
    free(sorted);
    return measure_overlap(c, w, t, by_itself_s, seconds);
}

/* Measure one cell and write it. Returns on how many ranks a result was wrong, summed over the checks. */
static int run_cell(FILE *out, const struct options *o, const struct collective *c, size_t size, struct timing *t,
                    struct samples *s, uint64_t *random) {
    struct work w = make_work(c, size, o->root);
    int wrong[2] = {0, 0};
    for (int v = ALONE; v <= PALMETTE; ++v) wrong[v] += check(c, &w, v, o->shared_clock);
    struct call worst[2];
    const double warm_s = now_s();
    for (int i = 0; i < o->warmup; ++i) {
        /* Rank 0 decides here, too: one pair at least, and no more than a quarter of a limited time. */
        const bool more = i == 0 || o->limit_s <= 0 || now_s() - warm_s < o->limit_s / 4;
        if (!time_pair(c, &w, t, i % 2, more, worst)) break;
    }
    const double begin_s = now_s();
    int pairs = 0;
    for (int good = 0;; ++pairs) {
        /* Rank 0 decides. Where ranks keep starting late, it gives up after four times as many pairs as asked for. */
        const bool at_limit = o->limit_s > 0 && pairs >= fewest_pairs && now_s() - warm_s > o->limit_s;
        const bool short_of_pairs = !at_limit && good < o->min_pairs && pairs < 4 * (double)o->min_pairs;
        const bool more = pairs < o->max_pairs && (short_of_pairs || (!at_limit && now_s() - begin_s < o->seconds));
        *random = mixed(*random, 1);
        const bool palmette_first = *random >> 63;
        if (!time_pair(c, &w, t, palmette_first, more, worst)) break;
        good += in_time(worst[ALONE]) && in_time(worst[PALMETTE]);
        s->palmette_first[pairs] = palmette_first;
        for (int v = ALONE; v <= PALMETTE; ++v) {
            s->time_s[v][pairs] = worst[v].time_s;
            s->late_s[v][pairs] = worst[v].late_s;
        }
    }
    const double elapsed_s = now_s() - begin_s;
    struct overlap overlap = {0};
    if (c->start[ALONE]) overlap = overlap_of(c, &w, t, s, pairs, o->seconds / 2);
    for (int v = ALONE; v <= PALMETTE; ++v) wrong[v] += check(c, &w, v, o->shared_clock);
    if (out) put_cell(out, c, &w, s, pairs, wrong, c->start[ALONE] ? &overlap : NULL, elapsed_s, t->window_s);
    free_work(&w);
    return wrong[ALONE] + wrong[PALMETTE];
}

/* Say what is wrong with the command line, on rank 0, and end all ranks with status 2 (0 after --help and --list). */
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
    if (wrong || list) explain_and_end(wrong, at, list);

    FILE *out = my_rank ? NULL : o.output ? fopen(o.output, "w") : stdout;
    if (my_rank == 0 && !out) stop("can't write %s; choose another file with --output", o.output);
    put_job(out, &o);
    struct timing timing = {
        .shared_clock = o.shared_clock, .spin = o.spin, .window_s = o.window_s, .shortest_window_s = o.window_s};
    struct samples samples = {.palmette_first = room((size_t)o.max_pairs, sizeof(bool))};
    for (int v = ALONE; v <= PALMETTE; ++v) {
        samples.time_s[v] = room((size_t)o.max_pairs, sizeof(double));
        samples.late_s[v] = room((size_t)o.max_pairs, sizeof(double));
    }
    uint64_t random = o.seed;
    int wrong_ranks = 0;
    for (int i = 0; i < o.cell_count && !o.pass_through; ++i)
        wrong_ranks += run_cell(out, &o, o.cells[i].collective, o.cells[i].size, &timing, &samples, &random);
    for (int i = 0; i < o.chosen_count && !o.pass_through && !o.cells; ++i)
        for (int j = 0; j < (has_data(o.chosen[i]) ? o.size_count : 1); ++j)
            wrong_ranks +=
                run_cell(out, &o, o.chosen[i], has_data(o.chosen[i]) ? o.sizes[j] : 0, &timing, &samples, &random);
    if (o.pass_through) run_passes(out, o.max_pairs, samples.time_s, &random);
    if (out) {
        fprintf(out, "{\"event\":\"end\",\"wrong\":%s}\n", wrong_ranks ? "true" : "false");
        fflush(out);
    }
    if (out && out != stdout) fclose(out);
    MPI_Finalize();
    return wrong_ranks ? 1 : 0;
}
