/* calibrate: measures LogP costs and bandwidths between pairs of ranks; experiments are requested one by one on rank
 * 0's standard input, with results on its standard output.
 *
 * A plain MPI program that `palmette calibrate` drives: launchers connect both streams to rank 0, wherever it runs, so
 * that no file system need be shared. Each request is a line (calibrate/request.h), each result a line of JSON. Ranks
 * that don't take part in an experiment sleep. All calls are PMPI_, so that they bypass preloaded libraries. The end of
 * the input ends the job. */
#define _GNU_SOURCE
#include <mpi.h>
#include <unistd.h>

#define PROGRAM "calibrate"
#include "calibrate/experiments.h"
#include "calibrate/memory.h"
#include "calibrate/request.h"
#include "calibrate/socket.h"
#include "json_text.h"
#include "program.h"

enum { NAME_BYTES = 128, STAR_VALUES = 3, QUARTILES = 3 };

static void put_names(const char *key, const char *names) {
    printf(",\"%s\":[", key);
    for (int r = 0; r < ranks; ++r) {
        if (r) putchar(',');
        put_text(stdout, names + (size_t)r * NAME_BYTES);
    }
    putchar(']');
}

/* Writes the MPI's version, and for each rank its processor name (MPI), host name (system) and socket. Collective. */
static void put_job(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "", name[MPI_MAX_PROCESSOR_NAME + 1] = "";
    char mine[2][NAME_BYTES] = {"", ""};
    int length = 0;
    PMPI_Get_library_version(version, &length);
    PMPI_Get_processor_name(name, &length);
    snprintf(mine[0], NAME_BYTES, "%.*s", NAME_BYTES - 1, name);
    gethostname(mine[1], NAME_BYTES - 1);
    char *names = my_rank ? NULL : allocate(2 * (size_t)ranks, NAME_BYTES);
    for (int i = 0; i < 2; ++i)
        PMPI_Gather(mine[i], NAME_BYTES, MPI_CHAR, names ? names + (size_t)i * (size_t)ranks * NAME_BYTES : NULL,
                    NAME_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
    const int socket = bound_socket();
    int *sockets = my_rank ? NULL : allocate((size_t)ranks, sizeof(int));
    PMPI_Gather(&socket, 1, MPI_INT, sockets, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (my_rank) return;
    printf("{\"event\":\"job\",\"format\":\"calibrate\",\"version\":1,\"ranks\":%d,\"mpi\":", ranks);
    put_text(stdout, version);
    put_names("processors", names);
    put_names("hosts", names + (size_t)ranks * NAME_BYTES);
    printf(",\"sockets\":[");
    for (int r = 0; r < ranks; ++r) printf("%s%d", r ? "," : "", sockets[r]);
    puts("]}");
    fflush(stdout);
    free(sockets);
    free(names);
}

/* Number of values that an experiment yields for each pair. */
static int value_count_of(const struct request *r) {
    if (!strcmp(r->what, "pingpong")) return (int)r->numbers[1];
    if (!strcmp(r->what, "quartiles")) return QUARTILES;
    if (!strcmp(r->what, "star")) return STAR_VALUES;
    if (!strcmp(r->what, "overhead")) return 2 * (int)r->numbers[1];
    if (!strcmp(r->what, "burst")) return (int)r->numbers[2];
    return !strcmp(r->what, "memory") ? 2 : 1;
}

/* Flows that contend for a link must start simultaneously: the first rank of the first pair releases the others. */
static void start_together(const struct request *r) {
    const int first = r->pairs[0].a;
    char nothing = 0;
    if (my_rank == first) {
        for (int i = 1; i < r->pair_count; ++i) receive_from(&nothing, 0, r->pairs[i].a, READY);
        for (int i = 1; i < r->pair_count; ++i) send_to(&nothing, 0, r->pairs[i].a, GO);
    } else {
        send_to(&nothing, 0, first, READY);
        receive_from(&nothing, 0, first, GO);
    }
}

static int by_size(const void *left, const void *right) {
    const double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

static void run_star(const struct request *r, double *values) {
    const int bytes = (int)r->numbers[0], trips = (int)r->numbers[1], centre = r->pairs[0].a;
    char *buffer = allocate((size_t)bytes + 1, 1);
    double *half_s = allocate((size_t)trips, sizeof(double));
    for (int i = 0; i < r->pair_count; ++i) {
        const int other = r->pairs[i].b;
        if (my_rank == other && other != centre) pingpong(buffer, bytes, trips, centre, false, NULL);
        if (my_rank != centre || other == centre) continue;
        pingpong(buffer, bytes, trips, other, true, half_s);
        qsort(half_s, (size_t)trips, sizeof(double), by_size);
        double *out = values + (size_t)i * STAR_VALUES;
        out[0] = half_s[0], out[1] = half_s[trips / 4], out[2] = half_s[trips / 2];
    }
    free(half_s);
    free(buffer);
}

static void run_quartiles(char *buffer, int bytes, int trips, int peer, bool leads, double *values) {
    double *half_s = leads ? allocate((size_t)trips, sizeof(double)) : NULL;
    pingpong(buffer, bytes, trips, peer, leads, half_s);
    if (!leads) return;
    qsort(half_s, (size_t)trips, sizeof(double), by_size);
    for (int i = 0; i < QUARTILES; ++i) values[i] = half_s[(i + 1) * trips / 4];
    free(half_s);
}

/* This rank's part of an experiment, as leader or follower of one pair. */
static void run_pair(const struct request *r, const struct pair *p, double *values) {
    const bool leads = p->a == my_rank;
    const int peer = leads ? p->b : p->a;
    const double *n = r->numbers;
    if (!strcmp(r->what, "memory")) {
        memory_rates((size_t)n[0], n[1], values);
        return;
    }
    const int bytes = (int)n[0];
    const bool flow = !strcmp(r->what, "stream");
    char *buffer = allocate(((size_t)bytes + 1) * (flow ? WINDOW : 1), 1);
    if (flow) {
        pingpong(buffer, 0, 0, peer, leads, NULL); /* sets up the connection */
        if (leads) {
            start_together(r);
            values[0] = send_flow(buffer, bytes, n[1], n[2], peer);
        } else {
            receive_flow(buffer, bytes, peer);
        }
    } else {
        if (leads) start_together(r);
        if (!strcmp(r->what, "pingpong")) pingpong(buffer, bytes, (int)n[1], peer, leads, values);
        if (!strcmp(r->what, "quartiles")) run_quartiles(buffer, bytes, (int)n[1], peer, leads, values);
        if (!strcmp(r->what, "overhead")) overhead(buffer, bytes, (int)n[1], n[2], peer, leads, values);
        if (!strcmp(r->what, "burst")) burst(buffer, bytes, (int)n[1], (int)n[2], peer, leads, values);
    }
    free(buffer);
}

/* Rank 0 collects the values of the pairs' first ranks and writes them. */
static void answer(const struct request *r, const double *mine, int values) {
    printf("{\"event\":\"answer\",\"what\":\"%s\",\"figures\":[", r->what);
    const bool star = !strcmp(r->what, "star");
    double *theirs = NULL;
    for (int i = 0; i < r->pair_count; ++i) {
        const double *from = mine;
        if (r->pairs[i].a != 0 && (i == 0 || !star)) {
            const int count = probe_with_backoff(r->pairs[i].a, RESULT);
            free(theirs);
            theirs = allocate((size_t)count, sizeof(double));
            PMPI_Recv(theirs, count, MPI_DOUBLE, r->pairs[i].a, RESULT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (r->pairs[i].a != 0) from = theirs;
        if (star) from += (size_t)i * (size_t)values;
        printf("%s[", i ? "," : "");
        for (int f = 0; f < values; ++f) printf("%s%.6g", f ? "," : "", from[f]);
        putchar(']');
    }
    free(theirs);
    puts("]}");
    fflush(stdout);
}

static void run(const struct request *r) {
    const bool star = !strcmp(r->what, "star");
    const int index = pair_of(r, my_rank), values = value_count_of(r);
    const bool leads = index >= 0 && r->pairs[index].a == my_rank;
    const size_t count = (size_t)values * (size_t)(star ? r->pair_count : 1);
    double *mine = allocate(leads ? count : 0, sizeof(double));
    if (star)
        run_star(r, mine);
    else if (index >= 0)
        run_pair(r, &r->pairs[index], mine);
    if (leads && my_rank != 0) PMPI_Send(mine, (int)count, MPI_DOUBLE, 0, RESULT, MPI_COMM_WORLD);
    if (my_rank == 0) answer(r, mine, values);
    free(mine);
}

/* Broadcasts rank 0's next line; "end" at the end of its input. The caller frees the line. Collective. */
static char *next_line(void) {
    char *line = NULL;
    size_t size = 0;
    int length = 0;
    if (my_rank == 0) {
        if (getline(&line, &size, stdin) < 0) {
            free(line);
            line = strdup("end");
        }
        if (!line) stop("no memory for a line");
        length = (int)strlen(line) + 1;
    }
    MPI_Request request;
    PMPI_Ibcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    wait_with_backoff(&request);
    if (my_rank) line = allocate((size_t)length, 1);
    PMPI_Ibcast(line, length, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
    wait_with_backoff(&request);
    return line;
}

int main(int argc, char **argv) {
    PMPI_Init(&argc, &argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    put_job();
    for (bool over = false; !over;) {
        char *line = next_line();
        struct request r = {.pairs = NULL};
        const char *wrong = read_request(&r, line, ranks);
        over = !wrong && !strcmp(r.what, "end");
        if (wrong && my_rank == 0) {
            printf("{\"event\":\"error\",\"message\":\"%s\"}\n", wrong);
            fflush(stdout);
        }
        if (!wrong && !over) run(&r);
        free(r.pairs);
        free(line);
    }
    PMPI_Finalize();
    return 0;
}
