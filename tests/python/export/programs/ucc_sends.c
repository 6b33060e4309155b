/* Runs collectives on UCC and tells what each rank sent: which algorithm UCC took shows in that.
 *
 * Usage: ucc_sends RANKS RANKS_OF_NODE COLLECTIVE:COUNT...
 *
 * Ranks are processes of this machine; each group of RANKS_OF_NODE of them tells UCC that it is a node of its own.
 * COUNT: 4-byte integers of a block, or of the vector of bcast, reduce and allreduce. A line for each collective:
 * "allreduce 16: 2 2 right", the number of messages that each rank sent within it. Any failure is a line on standard
 * error and status 1. The first line of output is UCC's version.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucc/api/ucc.h>
#include <unistd.h>

enum { MOST_RANKS = 64, SLOT_BYTES = 1 << 16 };

/* What all processes see: a board on which ranks meet outside of UCC, and the counts of a collective. */
struct shared {
    atomic_ulong written[MOST_RANKS];
    atomic_ulong read[MOST_RANKS];
    char slot[MOST_RANKS][SLOT_BYTES];
    unsigned long messages[MOST_RANKS];
    int wrong[MOST_RANKS];
};

static struct shared *shared;
static int ranks, ranks_of_node, rank;
static unsigned long turn, messages;

/* UCC's transport layer calls this one, since a program's symbols come before a library's. */
void *ucp_tag_send_nbx(void *endpoint, const void *buffer, size_t count, unsigned long tag, const void *parameters) {
    typedef void *Send(void *, const void *, size_t, unsigned long, const void *);
    static Send *real;
    if (real == NULL) real = (Send *)dlsym(dlopen("libucp.so.0", RTLD_LAZY), "ucp_tag_send_nbx");
    ++messages;
    return real(endpoint, buffer, count, tag, parameters);
}

/* By this UCC tells nodes from each other. */
unsigned long ucc_get_system_id(void) { return 1 + (unsigned long)(rank / ranks_of_node); }

struct meeting {
    void *to;
    size_t size;
    unsigned long turn;
    int done;
};

static ucc_status_t meet(void *from, void *to, size_t size, void *info, void **request) {
    (void)info;
    if (size > SLOT_BYTES) return UCC_ERR_NO_RESOURCE;
    ++turn;
    for (int other = 0; other < ranks; ++other)
        while (atomic_load(&shared->read[other]) + 1 < turn) sched_yield();
    memcpy(shared->slot[rank], from, size);
    atomic_store(&shared->written[rank], turn);
    struct meeting *mine = malloc(sizeof *mine);
    *mine = (struct meeting){to, size, turn, 0};
    *request = mine;
    return UCC_OK;
}

static ucc_status_t met(void *request) {
    struct meeting *mine = request;
    if (mine->done) return UCC_OK;
    for (int other = 0; other < ranks; ++other)
        if (atomic_load(&shared->written[other]) < mine->turn) return sched_yield(), UCC_INPROGRESS;
    for (int other = 0; other < ranks; ++other)
        memcpy((char *)mine->to + other * mine->size, shared->slot[other], mine->size);
    mine->done = 1;
    atomic_store(&shared->read[rank], mine->turn);
    return UCC_OK;
}

static ucc_status_t forget(void *request) {
    free(request);
    return UCC_OK;
}

static void wait_for_all(void) {
    char none = 0, all[MOST_RANKS];
    void *request;
    meet(&none, all, 1, NULL, &request);
    while (met(request) != UCC_OK) continue;
    forget(request);
}

#define CHECK(call)                                                         \
    do {                                                                    \
        ucc_status_t status_ = (call);                                      \
        if (status_ != UCC_OK) {                                            \
            fprintf(stderr, "%s: %s\n", #call, ucc_status_string(status_)); \
            return 1;                                                       \
        }                                                                   \
    } while (0)

struct kind {
    const char *name;
    ucc_coll_type_t type;
    enum { NONE, ONE, ALL } from, to; /* blocks that a rank gives and gets */
    int to_root;                      /* whether only the root receives */
    int lengths;                      /* whether lengths and displacements are given */
};

static const struct kind kinds[] = {
    {"allgather", UCC_COLL_TYPE_ALLGATHER, ONE, ALL, 0, 0},
    {"allgatherv", UCC_COLL_TYPE_ALLGATHERV, ONE, ALL, 0, 1},
    {"allreduce", UCC_COLL_TYPE_ALLREDUCE, ONE, ONE, 0, 0},
    {"alltoall", UCC_COLL_TYPE_ALLTOALL, ALL, ALL, 0, 0},
    {"alltoallv", UCC_COLL_TYPE_ALLTOALLV, ALL, ALL, 0, 1},
    {"barrier", UCC_COLL_TYPE_BARRIER, NONE, NONE, 0, 0},
    {"bcast", UCC_COLL_TYPE_BCAST, ONE, NONE, 0, 0},
    {"gather", UCC_COLL_TYPE_GATHER, ONE, ALL, 1, 0},
    {"reduce", UCC_COLL_TYPE_REDUCE, ONE, ONE, 1, 0},
    {"reduce_scatter", UCC_COLL_TYPE_REDUCE_SCATTER, ALL, ONE, 0, 0},
    {"reduce_scatterv", UCC_COLL_TYPE_REDUCE_SCATTERV, ALL, ONE, 0, 1},
};

/* What block `block` of a rank holds, and what the results must be: 1000 x giver + block, or sums of those. */
static int value(int giver, int block) { return 1000 * giver + block; }

static int expected(const struct kind *kind, int block) {
    switch (kind->type) {
        case UCC_COLL_TYPE_ALLGATHER:
        case UCC_COLL_TYPE_ALLGATHERV:
        case UCC_COLL_TYPE_GATHER:
            return value(block, 0);
        case UCC_COLL_TYPE_ALLTOALL:
        case UCC_COLL_TYPE_ALLTOALLV:
            return value(block, rank);
        case UCC_COLL_TYPE_BCAST:
            return value(0, 0);
        case UCC_COLL_TYPE_REDUCE_SCATTER:
        case UCC_COLL_TYPE_REDUCE_SCATTERV:
            return value(ranks * (ranks - 1) / 2, 0) + ranks * rank;
        default:
            return value(ranks * (ranks - 1) / 2, 0);
    }
}

static size_t blocks(int which) { return which == NONE ? 0 : which == ONE ? 1 : (size_t)ranks; }

static int run(const struct kind *kind, size_t count, ucc_context_h context, ucc_team_h team) {
    const size_t from_count = count * blocks(kind->from), to_count = count * blocks(kind->to);
    int *from = calloc(from_count + 1, sizeof(int));
    int *to = calloc(to_count + 1, sizeof(int));
    ucc_count_t length[MOST_RANKS];
    ucc_aint_t start[MOST_RANKS];
    for (int block = 0; block < ranks; ++block) length[block] = count, start[block] = count * block;
    for (size_t at = 0; at < from_count; ++at) from[at] = value(rank, (int)(at / count));

    ucc_coll_args_t call = {.coll_type = kind->type, .op = UCC_OP_SUM, .root = 0};
    call.src.info = (ucc_coll_buffer_info_t){from, from_count, UCC_DT_INT32, UCC_MEMORY_TYPE_HOST};
    call.dst.info = (ucc_coll_buffer_info_t){to, to_count, UCC_DT_INT32, UCC_MEMORY_TYPE_HOST};
    if (kind->lengths) {
        const ucc_coll_buffer_info_v_t all_to = {to, length, start, UCC_DT_INT32, UCC_MEMORY_TYPE_HOST};
        const ucc_coll_buffer_info_v_t all_from = {from, length, start, UCC_DT_INT32, UCC_MEMORY_TYPE_HOST};
        call.mask = UCC_COLL_ARGS_FIELD_FLAGS;
        call.flags = UCC_COLL_ARGS_FLAG_COUNT_64BIT | UCC_COLL_ARGS_FLAG_DISPLACEMENTS_64BIT;
        if (kind->to == ALL || kind->type == UCC_COLL_TYPE_REDUCE_SCATTERV) call.dst.info_v = all_to;
        if (kind->type == UCC_COLL_TYPE_ALLTOALLV) call.src.info_v = all_from;
    }
    messages = 0;
    ucc_coll_req_h request;
    CHECK(ucc_collective_init(&call, &request, team));
    CHECK(ucc_collective_post(request));
    ucc_status_t status;
    while ((status = ucc_collective_test(request)) == UCC_INPROGRESS) CHECK(ucc_context_progress(context));
    CHECK(status);
    CHECK(ucc_collective_finalize(request));

    int wrong = 0;
    const int *result = kind->type == UCC_COLL_TYPE_BCAST ? from : to;
    const size_t results = kind->type == UCC_COLL_TYPE_BCAST ? from_count : to_count;
    if (!kind->to_root || rank == 0)
        for (size_t at = 0; at < results; ++at) wrong |= result[at] != expected(kind, (int)(at / count));
    shared->messages[rank] = messages;
    shared->wrong[rank] = wrong;
    wait_for_all();
    if (rank == 0) {
        wrong = 0;
        printf("%s %zu:", kind->name, count);
        for (int other = 0; other < ranks; ++other) {
            printf(" %lu", shared->messages[other]);
            wrong |= shared->wrong[other];
        }
        printf(" %s\n", wrong ? "wrong" : "right");
    }
    wait_for_all();
    free(from);
    free(to);
    return 0;
}

static int be_a_rank(int argc, char **argv) {
    ucc_lib_config_h library_settings;
    CHECK(ucc_lib_config_read(NULL, NULL, &library_settings));
    const ucc_lib_params_t single = {.mask = UCC_LIB_PARAM_FIELD_THREAD_MODE, .thread_mode = UCC_THREAD_SINGLE};
    ucc_lib_h library;
    CHECK(ucc_init(&single, library_settings, &library));
    ucc_context_config_h settings;
    CHECK(ucc_context_config_read(library, NULL, &settings));
    const ucc_oob_coll_t board = {meet, met, forget, NULL, (uint32_t)ranks, (uint32_t)rank};
    const ucc_context_params_t on_board = {.mask = UCC_CONTEXT_PARAM_FIELD_OOB, .oob = board};
    ucc_context_h context;
    CHECK(ucc_context_create(library, &on_board, settings, &context));
    const ucc_team_params_t all = {.mask = UCC_TEAM_PARAM_FIELD_OOB, .oob = board};
    ucc_team_h team;
    CHECK(ucc_team_create_post(&context, 1, &all, &team));
    ucc_status_t status;
    while ((status = ucc_team_create_test(team)) == UCC_INPROGRESS) CHECK(ucc_context_progress(context));
    CHECK(status);
    if (rank == 0) printf("UCC %s\n", ucc_get_version_string());
    for (int word = 0; word < argc; ++word) {
        const char *colon = strchr(argv[word], ':');
        const size_t length = colon == NULL ? strlen(argv[word]) : (size_t)(colon - argv[word]);
        const struct kind *kind = NULL;
        for (size_t at = 0; at < sizeof kinds / sizeof *kinds; ++at)
            if (strlen(kinds[at].name) == length && strncmp(kinds[at].name, argv[word], length) == 0) kind = &kinds[at];
        if (kind == NULL) return fprintf(stderr, "%s: no collective of this program\n", argv[word]), 1;
        if (run(kind, colon == NULL ? 0 : strtoul(colon + 1, NULL, 10), context, team) != 0) return 1;
    }
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: %s RANKS RANKS_OF_NODE COLLECTIVE:COUNT...\n", argv[0]), 2;
    ranks = atoi(argv[1]);
    ranks_of_node = atoi(argv[2]);
    if (ranks < 1 || ranks > MOST_RANKS) return fprintf(stderr, "RANKS: 1 to %d\n", MOST_RANKS), 2;
    if (ranks_of_node < 1) return fprintf(stderr, "RANKS_OF_NODE: 1 or more\n"), 2;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return perror("mmap"), 1;
    const pid_t parent = getpid();
    for (rank = 0; rank < ranks; ++rank) {
        if (fork() != 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) return 1;
        _exit(be_a_rank(argc - 3, argv + 3));
    }
    int failed = 0, status;
    while (wait(&status) > 0) {
        if (status == 0) continue;
        failed = 1;
        kill(0, SIGTERM); /* the others would wait for ever; the caller made this program lead a group */
    }
    return failed;
}
