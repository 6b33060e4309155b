/* simbench: measures the simulated time of a collective on a cluster simulated by SimGrid.
 *
 * One process is the whole job, so all ranks share one clock. Each size of a collective is called once and its result
 * compared byte for byte, also where nothing may be written; then it is called again, from a start that all ranks
 * share, and the time runs to the end of the last rank. The same input gives the same times to the last digit, so
 * nothing is repeated, except under background traffic, where the mean of several calls is reported. `alone` calls
 * PMPI_X, the simulator's own collectives; `palmette` calls MPI_X, which palmette's wrappers in this program intercept.
 * Its output is a JSON object a line, which palmette_lab/simulate reads. */
#define _GNU_SOURCE
#include <mpi.h>
#include <smpi/smpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROGRAM "simbench"
#include "../collbench/work.h"
#include "composed.h"
#include "costs.h"
#include "folded.h"
#include "services.h"
#include "together.h"

enum { MOST_SIZES = 64, STOP_TAG = 4711, PAIR_TAG = 4715, CALLS_UNDER_TRAFFIC = 5 };

static MPI_Comm measured; /* the ranks that are measured; neither services nor those of the background */
static MPI_Comm together; /* these and services, which make the same calls */
static bool serves;       /* this process is a service */

struct options {
    enum variant variant;
    const struct collective *collective;
    size_t sizes[MOST_SIZES];
    int size_count;
    int root;
    int background;          /* number of ranks, the last ones, that run an endless background all-to-all */
    size_t background_bytes; /* bytes per peer and round */
    int services;            /* number of processes, the last ones, that simulate aggregators; none in a background */
    int alone_rounds;        /* above 0: all ranks run the background traffic, for so many rounds */
    double checked_bytes;    /* sizes whose buffers exceed this, summed over all ranks, are timed but not verified */
    struct costs costs;
    char factoring[256]; /* not empty: a composition is run instead of the function */
};

/* --- one cell --- */

static void *allocate_folded(size_t bytes) {
    void *memory = folded_memory(bytes);
    if (!memory) stop("no address space for %zu bytes on rank %d; take smaller sizes or fewer ranks", bytes, my_rank);
    return memory;
}

static double bytes_in_all(enum shape shape, enum place place, size_t size) {
    const double each = shape == NOTHING ? 0 : shape == BLOCK ? (double)size : (double)size * ranks;
    return place == EVERYWHERE ? each * ranks : each;
}

/* Total buffer size of all ranks, the same value on each: send, receive and expected data. */
static double buffer_bytes(const struct collective *c, size_t size) {
    return bytes_in_all(c->send_shape, c->send_place, size) + 2 * bytes_in_all(c->recv_shape, c->recv_place, size);
}

static struct work make_work(const struct collective *c, size_t size, int root, double checked_bytes, bool *checked) {
    struct work w = make_arguments(c, measured, size, root);
    /* Allocated only on ranks that send or receive: a thousand ranks share the memory of this machine. */
    *checked = buffer_bytes(c, size) <= checked_bytes;
    if (serves) return w;
    const size_t send = (takes_part(c->send_place, &w) ? send_bytes(c, &w) : 0) + GUARD;
    w.received = takes_part(c->recv_place, &w) ? recv_bytes(c, &w) : 0;
    w.send = *checked ? allocate(1, send) : allocate_folded(send);
    w.recv = *checked ? allocate(1, w.received + GUARD) : allocate_folded(w.received + GUARD);
    return w;
}

static void free_work(struct work *w, bool checked) {
    free_arguments(w);
    if (checked) {
        free(w->send);
        free(w->recv);
    } else {
        free_folded_memory(w->send);
        free_folded_memory(w->recv);
    }
}

/* Sleeps until `start_s`, set by rank 0; returns the lateness of this rank. */
static double sleep_until(double start_s) {
    const double left_s = start_s - PMPI_Wtime();
    if (left_s <= 0) return -left_s;
    const struct timespec length = {(time_t)left_s, (long)((left_s - (double)(time_t)left_s) * 1e9)};
    nanosleep(&length, NULL);
    return 0;
}

/* Common start of all ranks, `ahead_s` from now. Returns the lateness of this one. */
static double start_together(double ahead_s) {
    /* Rank 0 sets the time once all ranks have arrived. */
    max_at_first(0, together);
    return sleep_until(broadcast_from_first(PMPI_Wtime() + ahead_s, together));
}

/* What is measured: one call. */
struct subject {
    const struct collective *collective;
    enum variant variant;
    struct composed composed;
    bool is_composed;
    bool in_place; /* an allreduce */
};

static int call_once(struct subject *s, const struct work *w) {
    if (serves) return serve_allreduce(w->elements);
    if (s->in_place) return MPI_Allreduce(MPI_IN_PLACE, w->recv, w->elements, MPI_UNSIGNED, MPI_SUM, w->comm);
    return s->is_composed ? call_composed(&s->composed) : s->collective->call[s->variant](w);
}

/* Calls once and verifies the result. Returns, at rank 0, the number of ranks with a wrong result. */
static int check(struct subject *s, const struct work *w) {
    const struct collective *c = s->collective;
    unsigned char *expected = serves ? NULL : expect(c, w);
    if (s->in_place && !serves) memcpy(w->recv, w->send, w->received);
    /* The last rank enters late: a barrier must wait for it. */
    start_together(1e-3);
    const bool is_last = my_rank == ranks - 1;
    if (!has_data(c) && is_last) sleep_until(PMPI_Wtime() + 1e-3);
    const double came_s = PMPI_Wtime();
    const int error = call_once(s, w);
    const double left_s = PMPI_Wtime();
    const bool early = !has_data(c) && left_s < max_at_all(came_s, measured);
    const bool wrong = !serves && first_wrong(c, w, expected) < w->received + GUARD;
    free(expected);
    return sum_at_first(error != MPI_SUCCESS || wrong || early, together);
}

/* The time of one call from the common start to the last rank's end, at rank 0. */
static double time_call(struct subject *s, const struct work *w) {
    for (double ahead_s = 1e-3;; ahead_s *= 2) {
        const double late_s = start_together(ahead_s);
        const double begin_s = PMPI_Wtime();
        call_once(s, w);
        const double longest_s = max_at_first(serves ? 0 : PMPI_Wtime() - begin_s + late_s, together);
        if (max_at_all(late_s, together) <= 0) return longest_s;
    }
}

/* The mean time of several calls: each meets background traffic in a different phase. */
static double mean_time_of_calls(struct subject *s, const struct work *w, int calls) {
    double sum_s = 0;
    for (int i = 0; i < calls; ++i) sum_s += time_call(s, w);
    return sum_s / calls;
}

static void run_cell(const struct options *o, size_t size) {
    const struct collective *c = o->collective;
    bool checked = false;
    struct work w = make_work(c, size, o->root, o->checked_bytes, &checked);
    fold_scratch(!checked);
    /* The first call is never timed: palmette discovers the topology in it, and agrees on an algorithm for the size. */
    struct subject subject = {.collective = c, .variant = o->variant, .is_composed = *o->factoring};
    if (*o->factoring) {
        const char *error = compose(&subject.composed, c, &w, o->factoring);
        if (error) stop("%s", error);
    }
    int wrong = 0;
    if (checked) {
        wrong = check(&subject, &w);
        subject.in_place = o->services > 0;
        if (subject.in_place) wrong += check(&subject, &w);
        subject.in_place = false;
    } else
        call_once(&subject, &w);
    const double time_s = mean_time_of_calls(&subject, &w, o->background ? CALLS_UNDER_TRAFFIC : 1);
    if (*o->factoring) free_composed(&subject.composed);
    if (my_rank == 0) {
        printf("{\"event\":\"cell\",\"collective\":\"%s\",\"size_bytes\":%zu,\"root\":%d,\"checked\":%s,", c->name,
               size, o->root, checked ? "true" : "false");
        printf("\"wrong_ranks\":%d,\"time_s\":%.12g}\n", wrong, time_s);
        fflush(stdout);
    }
    free_work(&w, checked);
}

/* --- the background --- */

/* A hash of the rank, as the key of a pseudo-random order of the background ranks: each step of their exchange then
 * loads the switches evenly. Rank 0 stays the first. */
static int shuffled(int rank) { return (int)(((unsigned)rank * 2654435761u) >> 1); }

/* Background traffic: a pairwise all-to-all, for `alone_rounds` rounds or, where that is 0, until rank 0 of the job
 * sends a stop message. Point to point instead of the simulator's collective, so that every algorithm is measured under
 * the same traffic, whatever collectives are selected globally. */
static void run_background(MPI_Comm comm, size_t bytes, int alone_rounds) {
    int rank, size, over = 0, rounds = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    char *send = allocate(bytes, 1);
    char *recv = allocate(bytes, 1);
    const double begin_s = PMPI_Wtime();
    while (!over) {
        for (int step = 1; step < size; ++step)
            PMPI_Sendrecv(send, (int)bytes, MPI_BYTE, (rank + step) % size, PAIR_TAG, recv, (int)bytes, MPI_BYTE,
                          (rank + size - step) % size, PAIR_TAG, comm, MPI_STATUS_IGNORE);
        ++rounds;
        if (alone_rounds > 0)
            over = rounds == alone_rounds;
        else if (rank == 0)
            PMPI_Iprobe(0, STOP_TAG, MPI_COMM_WORLD, &over, MPI_STATUS_IGNORE);
        over = broadcast_from_first(over, comm) > 0;
    }
    const double time_s = PMPI_Wtime() - begin_s;
    if (rank == 0) {
        if (alone_rounds == 0) PMPI_Recv(&over, 1, MPI_INT, 0, STOP_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("{\"event\":\"background\",\"ranks\":%d,\"rounds\":%d,\"time_s\":%.12g}\n", size, rounds, time_s);
        fflush(stdout);
    }
    free(send);
    free(recv);
}

/* --- the command line, made by `palmette-lab simulate` --- */

static struct end_cost read_cost(const char *text) {
    struct end_cost cost = {0, 0};
    if (sscanf(text, "%lf,%lf", &cost.message_s, &cost.byte_s) != 2) stop("'%s' is not SECONDS,SECONDS_A_BYTE", text);
    return cost;
}

static void read_sizes(struct options *o, const char *text) {
    for (char *end = NULL; *text && o->size_count < MOST_SIZES; text = *end == ',' ? end + 1 : end) {
        o->sizes[o->size_count++] = strtoull(text, &end, 10);
        if (end == text || (*end && *end != ',')) stop("'%s' is no list of sizes in bytes", text);
    }
}

/* The launcher is a shell script that splits arguments at blanks: one word each. */
static void add_word(char *text, size_t capacity, const char *word) {
    const size_t used = strlen(text);
    if (used + strlen(word) + 2 > capacity) stop("'%s' is one word too many", word);
    snprintf(text + used, capacity - used, "%s%s", used ? " " : "", word);
}

static struct options read_options(int argc, char **argv) {
    struct options o = {.variant = PALMETTE};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--variant") == 0)
            o.variant = strcmp(value, "alone") == 0 ? ALONE : PALMETTE;
        else if (strcmp(name, "--collective") == 0)
            o.collective = find_collective(value);
        else if (strcmp(name, "--sizes") == 0)
            read_sizes(&o, value);
        else if (strcmp(name, "--factoring") == 0)
            add_word(o.factoring, sizeof o.factoring, value);
        else if (strcmp(name, "--root") == 0)
            o.root = atoi(value);
        else if (strcmp(name, "--checked-bytes") == 0)
            o.checked_bytes = atof(value);
        else if (strcmp(name, "--background") == 0)
            o.background = atoi(value);
        else if (strcmp(name, "--background-block") == 0)
            o.background_bytes = strtoull(value, NULL, 10);
        else if (strcmp(name, "--services") == 0)
            o.services = atoi(value);
        else if (strcmp(name, "--alone-rounds") == 0)
            o.alone_rounds = atoi(value);
        else if (strcmp(name, "--send-inside") == 0)
            o.costs.send_inside = read_cost(value);
        else if (strcmp(name, "--receive-inside") == 0)
            o.costs.receive_inside = read_cost(value);
        else if (strcmp(name, "--send-between") == 0)
            o.costs.send_between = read_cost(value);
        else if (strcmp(name, "--receive-between") == 0)
            o.costs.receive_between = read_cost(value);
        else if (strcmp(name, "--eager") == 0)
            o.costs.eager_bytes = strtoul(value, NULL, 10);
        else
            stop("'%s': no such option; `palmette-lab simulate` runs this program", name);
    }
    if (!o.alone_rounds && (!o.collective || !o.size_count))
        stop("no collective and sizes; `palmette-lab simulate` runs this program");
    return o;
}

__attribute__((visibility("default"))) int main(int argc, char **argv) {
    struct options o = read_options(argc, argv);
    charge(&o.costs);
    set_services(o.services);
    if (o.variant == PALMETTE)
        MPI_Init(&argc, &argv);
    else
        PMPI_Init(&argc, &argv);
    int all;
    PMPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &all);
    ranks = all - o.background - o.services;
    if (o.alone_rounds) {
        MPI_Comm alone;
        PMPI_Comm_split(MPI_COMM_WORLD, 0, shuffled(my_rank), &alone);
        run_background(alone, o.background_bytes, o.alone_rounds);
        PMPI_Comm_free(&alone);
        return PMPI_Finalize();
    }
    if (ranks < 1 || o.root >= ranks)
        stop("%d ranks, %d of them in the background, root %d", all, o.background, o.root);
    measured = MPI_COMM_WORLD;
    serves = o.services && my_rank >= ranks;
    const bool in_background = o.background && my_rank >= ranks;
    if (o.services) PMPI_Comm_split(MPI_COMM_WORLD, serves, my_rank, &measured);
    if (o.background)
        PMPI_Comm_split(MPI_COMM_WORLD, in_background, in_background ? shuffled(my_rank - ranks) : my_rank, &measured);
    together = o.services ? MPI_COMM_WORLD : measured;
    if (in_background) {
        run_background(measured, o.background_bytes, 0);
    } else {
        for (int i = 0; i < o.size_count; ++i) run_cell(&o, o.sizes[i]);
        const int over = 1;
        if (my_rank == 0 && o.background) PMPI_Send(&over, 1, MPI_INT, ranks, STOP_TAG, MPI_COMM_WORLD);
    }
    if (measured != MPI_COMM_WORLD) PMPI_Comm_free(&measured);
    return o.variant == PALMETTE ? MPI_Finalize() : PMPI_Finalize();
}
