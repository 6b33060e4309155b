/* patternbench: measures communication patterns, by MPI point-to-point, MPI put, shared memory or single copy (CMA), in
 * sequential steps and concurrently.
 *
 * A plain MPI program that `palmette bench pattern` starts (docs/guide/patterns.md); all calls are PMPI_, so that they
 * bypass preloaded libraries. The messages are read from a file (patternbench/messages.h). All ranks start at a common
 * time, with their receives posted; the time of a class of messages is the arrival of its last one. Every byte is
 * verified before and after the timing.
 *
 * The patterns are those of Hidayetoglu et al., "CommBench: Micro-benchmarking hierarchical networks with multi-GPU,
 * multi-NIC nodes", ICS 2024; how they are timed and what is reported is not. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "patternbench"
/* The collectives in there are unused here. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include "collbench/cell.h"
#include "collbench/output.h"
#include "collbench/timing.h"
#pragma GCC diagnostic pop
#include "patternbench/exchange.h"
#include "patternbench/memory.h"
#include "patternbench/messages.h"
#include "patternbench/options.h"

/* Times of all calls: of the slowest rank on rank 0, and of its own messages on each rank. */
struct samples {
    int calls, kept; /* kept: maximum number per message */
    double *time_s, *late_s;
    double *classes_s; /* by call and class: last arrival; then the start of the first rank */
    float *messages_s; /* by own message and call */
};

enum { MOST_KEPT = 1 << 26 };

static double end_of_own_memory(const struct pattern *p, bool sent) {
    int64_t end = 0;
    for (int i = 0; i < p->own_count; ++i) {
        const struct message *m = &p->own[i];
        if (m->source == my_rank && (!sent || m->origin == my_rank) && m->source_at + m->bytes > end)
            end = m->source_at + m->bytes;
        if (!sent && m->target == my_rank && m->target_at + m->bytes > end) end = m->target_at + m->bytes;
    }
    return (double)end;
}

static void prepare_windows(struct exchange *e, size_t bytes) {
    int puts = 0, any = 0;
    for (int i = 0; i < e->pattern->own_count; ++i) puts = puts || e->pattern->own[i].library == BY_RMA;
    PMPI_Allreduce(&puts, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    e->has_window = any != 0;
    if (!any) return;
    if (PMPI_Win_create(e->memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &e->window) != MPI_SUCCESS)
        stop("this MPI makes no window; send by mpi instead of rma");
    PMPI_Win_lock_all(0, e->window);
}

static void free_exchange(struct exchange *e) {
    if (e->has_window) {
        PMPI_Win_unlock_all(e->window);
        PMPI_Win_free(&e->window);
    }
    free(e->memory), free(e->out), free(e->in);
    free(e->requests), free(e->completed), free(e->arrived_s), free(e->entered_s);
}

/* One verified call. Returns the number of ranks with wrong bytes; the first reports them. Collective. */
static int check_exchange(struct exchange *e, size_t bytes, size_t sent) {
    memset(e->memory, UNTOUCHED, bytes);
    for (size_t i = 0; i < sent; ++i) e->memory[i] = byte_of(my_rank, 0, i);
    post_receives(e);
    PMPI_Barrier(MPI_COMM_WORLD);
    run_exchange(e);
    const struct message *bad = NULL;
    for (int i = 0; i < e->pattern->own_count && !bad; ++i) {
        const struct message *m = &e->pattern->own[i];
        for (int64_t b = 0; m->target == my_rank && b < m->bytes && !bad; ++b)
            if (e->memory[m->target_at + b] != byte_of(m->origin, 0, (size_t)(m->origin_at + b))) bad = m;
    }
    int mine = bad != NULL, wrong = 0, first = bad ? my_rank : ranks, lowest = ranks;
    PMPI_Allreduce(&mine, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    PMPI_Allreduce(&first, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (lowest == my_rank)
        fprintf(stderr, PROGRAM ": rank %d got wrong bytes from rank %d in step %d, message %d of %d bytes\n", my_rank,
                bad->source, bad->step, bad->number, (int)bad->bytes);
    return wrong;
}

/* Class times of the current call: arrivals from the common start. Collective. */
static void reduce_classes(const struct exchange *e, double start_s, double *mine, double *all) {
    const int classes = e->pattern->classes;
    for (int c = 0; c < classes; ++c) mine[c] = 0, mine[classes + c] = -1e30;
    for (int i = 0; i < e->pattern->own_count; ++i) {
        const struct message *m = &e->pattern->own[i];
        const double arrived_s = e->arrived_s[i] - start_s, begun_s = e->entered_s[m->step] - start_s;
        if (m->target == my_rank && arrived_s > mine[m->class]) mine[m->class] = arrived_s;
        /* The minimum, as the maximum of negated values. */
        if (-begun_s > mine[classes + m->class]) mine[classes + m->class] = -begun_s;
    }
    PMPI_Allreduce(mine, all, 2 * classes, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static void time_calls(const struct options *o, struct exchange *e, struct timing *t, struct samples *s) {
    const int classes = e->pattern->classes, own = e->pattern->own_count;
    double *mine = allocate(2 * (size_t)classes, sizeof *mine), *all = allocate(2 * (size_t)classes, sizeof *all);
    double begin_s = now_s();
    for (int call = -o->how.warmup;; ++call) {
        if (call == 0) begin_s = now_s();
        post_receives(e);
        const bool more = call < o->max_calls && (call < o->min_calls || now_s() - begin_s < o->how.seconds);
        if (!start_together(t, more)) break;
        run_exchange(e);
        const struct call worst = finish_together(t);
        reduce_classes(e, t->start_s, mine, all);
        if (call < 0) continue;
        s->calls = call + 1;
        s->time_s[call] = worst.time_s, s->late_s[call] = worst.late_s;
        if (my_rank == 0)
            memcpy(s->classes_s + 2 * (size_t)classes * (size_t)call, all, 2 * (size_t)classes * sizeof *all);
        for (int i = 0; i < own && call < s->kept; ++i) {
            const struct message *m = &e->pattern->own[i];
            if (m->target != my_rank) continue;
            /* A message of a later step may arrive before its receiver enters that step. */
            const double begun_s = m->step == 0 ? 0 : -all[classes + m->class];
            s->messages_s[(size_t)i * (size_t)s->kept + (size_t)call] = (float)(e->arrived_s[i] - t->start_s - begun_s);
        }
    }
    /* Cancels the receives posted for a call that did not take place. */
    for (int i = 0; i < own; ++i)
        if (*receiving(e, i) != MPI_REQUEST_NULL) {
            PMPI_Cancel(receiving(e, i));
            PMPI_Wait(receiving(e, i), MPI_STATUS_IGNORE);
        }
    free(mine), free(all);
}

static int compare_floats(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* --- output, by rank 0 --- */

static void put_samples(FILE *out, const struct pattern *p, const struct samples *s, int wrong) {
    fprintf(out, "{\"event\":\"samples\",\"calls\":%d,\"wrong_ranks\":%d", s->calls, wrong);
    put_times(out, "time_s", s->time_s, s->calls);
    put_times(out, "late_s", s->late_s, s->calls);
    fputs(",\"classes\":[", out);
    double *list = allocate((size_t)s->calls, sizeof *list);
    for (int c = 0; c < p->classes; ++c) {
        fprintf(out, "%s{\"class\":%d", c ? "," : "", c);
        for (int begin = 0; begin < 2; ++begin) {
            for (int i = 0; i < s->calls; ++i) {
                const double value =
                    s->classes_s[2 * (size_t)p->classes * (size_t)i + (size_t)(begin * p->classes + c)];
                list[i] = begin ? -value : value;
            }
            put_times(out, begin ? "begin_s" : "end_s", list, s->calls);
        }
        fputc('}', out);
    }
    free(list);
    fputs("]}\n", out);
    fflush(out);
}

/* The median time of each message, from the common start or from the first rank's entry into its step. Collective. */
static void put_messages(FILE *out, const struct pattern *p, const struct samples *s) {
    struct median {
        int number;
        float time_s;
    };
    struct median *mine = allocate((size_t)p->own_count, sizeof *mine);
    int count = 0, calls = s->calls < s->kept ? s->calls : s->kept;
    for (int i = 0; i < p->own_count && calls > 0; ++i) {
        if (p->own[i].target != my_rank) continue;
        float *times = s->messages_s + (size_t)i * (size_t)s->kept;
        qsort(times, (size_t)calls, sizeof *times, compare_floats);
        mine[count++] = (struct median){p->own[i].number, times[calls / 2]};
    }
    int *counts = allocate((size_t)ranks, sizeof *counts), *offsets = allocate((size_t)ranks + 1, sizeof *offsets);
    PMPI_Gather(&count, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; ++r) offsets[r + 1] = offsets[r] + counts[r];
    struct median *all = allocate((size_t)offsets[ranks], sizeof *all);
    MPI_Datatype type;
    PMPI_Type_contiguous((int)sizeof *all, MPI_BYTE, &type);
    PMPI_Type_commit(&type);
    PMPI_Gatherv(mine, count, type, all, counts, offsets, type, 0, MPI_COMM_WORLD);
    PMPI_Type_free(&type);
    if (out) {
        fputs("{\"event\":\"messages\",\"number\":[", out);
        for (int i = 0; i < offsets[ranks]; ++i) fprintf(out, "%s%d", i ? "," : "", all[i].number);
        fputs("],\"median_s\":[", out);
        for (int i = 0; i < offsets[ranks]; ++i) fprintf(out, "%s%.9f", i ? "," : "", (double)all[i].time_s);
        fputs("]}\n", out);
    }
    free(mine), free(counts), free(offsets), free(all);
}

/* Returns the status of the program. Collective. */
static int measure(FILE *out, const struct options *o, struct pattern *p) {
    const size_t bytes = (size_t)end_of_own_memory(p, false), sent = (size_t)end_of_own_memory(p, true);
    const size_t own = (size_t)p->own_count;
    struct exchange e = {.pattern = p,
                         .rank = my_rank,
                         .spin = o->how.spin,
                         .memory = allocate(bytes + 1, 1),
                         .out = allocate(own, sizeof *e.out),
                         .in = allocate(own, sizeof *e.in),
                         .requests = allocate(2 * own, sizeof *e.requests),
                         .completed = allocate(2 * own, sizeof *e.completed),
                         .arrived_s = allocate(own, sizeof *e.arrived_s),
                         .entered_s = allocate((size_t)p->steps, sizeof *e.entered_s)};
    struct node node = {MPI_COMM_NULL, MPI_WIN_NULL, false};
    const char *complaint = make_slots(p, my_rank, e.memory, &node, e.out, e.in);
    int mine = complaint ? my_rank : ranks, first = ranks;
    PMPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == my_rank) fprintf(stderr, PROGRAM ": %s\n", complaint);
    int status = first < ranks ? 2 : 0;
    if (status == 0) {
        prepare_windows(&e, bytes);
        int wrong = check_exchange(&e, bytes, sent);
        struct timing t = timing_of(&o->how);
        struct samples s = {.kept = own == 0                                ? o->max_calls
                                    : (int)(MOST_KEPT / own) < o->max_calls ? (int)(MOST_KEPT / own)
                                                                            : o->max_calls};
        s.time_s = allocate((size_t)o->max_calls, sizeof *s.time_s);
        s.late_s = allocate((size_t)o->max_calls, sizeof *s.late_s);
        s.classes_s = allocate(my_rank == 0 ? 2 * (size_t)p->classes * (size_t)o->max_calls : 1, sizeof *s.classes_s);
        s.messages_s = allocate(own * (size_t)s.kept, sizeof *s.messages_s);
        time_calls(o, &e, &t, &s);
        wrong += check_exchange(&e, bytes, sent);
        if (out) put_samples(out, p, &s, wrong);
        put_messages(out, p, &s);
        free(s.time_s), free(s.late_s), free(s.classes_s), free(s.messages_s);
        status = wrong ? 1 : 0;
    }
    free_slots(&node);
    free_exchange(&e);
    return status;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct options o;
    const char *at = "", *wrong = parse_options(&o, argc, argv, &at);
    if (wrong) {
        if (my_rank == 0 && *wrong) fprintf(stderr, PROGRAM ": '%s': %s\n", at, wrong);
        if (my_rank == 0 && !*wrong) fputs(usage, stdout);
        MPI_Finalize();
        return my_rank == 0 && !*wrong ? 0 : 2;
    }
    FILE *out = open_output(&o.how);
    put_job(out, PROGRAM, o.how.shared_clock, 0);
    int status = 0;
    for (int i = 0; i < o.files && status < 2; ++i) {
        struct pattern p = {0};
        wrong = share_messages(o.messages[i], my_rank, ranks, &p);
        if (wrong && *wrong)
            fprintf(stderr, PROGRAM ": %s %s; let palmette bench pattern write it\n", o.messages[i], wrong);
        const int now = wrong ? 2 : measure(out, &o, &p);
        status = now > status ? now : status;
        free(p.own);
    }
    if (out && status < 2) fprintf(out, "{\"event\":\"end\"}\n");
    if (out && out != stdout) fclose(out);
    MPI_Finalize();
    return status;
}
