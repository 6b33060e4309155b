/* Rank 2 does one thing otherwise than the others, under the program's default error handler, which ends the job:
 * PALMETTE_CHECK must say before that who does what, and in which line. At least 3 ranks. Without the check most of
 * these hang or give wrong data.
 *
 *     mistakes KIND FORM     KIND: root count type operation order none; FORM: blocking nonblocking persistent
 *     mistakes KIND          KIND: communicators groups finalize receive
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static double from[64], to[64];
static int blocks = 1, persists = 0;
static MPI_Request request = MPI_REQUEST_NULL;

/* In the form that was asked for, in the line that uses it. */
#define BCAST(count, root)                                                                \
    (blocks     ? MPI_Bcast(to, count, MPI_INT, root, comm)                               \
     : persists ? MPI_Bcast_init(to, count, MPI_INT, root, comm, MPI_INFO_NULL, &request) \
                : MPI_Ibcast(to, count, MPI_INT, root, comm, &request))
#define ALLREDUCE(type, op)                                                                \
    (blocks     ? MPI_Allreduce(from, to, 4, type, op, comm)                               \
     : persists ? MPI_Allreduce_init(from, to, 4, type, op, comm, MPI_INFO_NULL, &request) \
                : MPI_Iallreduce(from, to, 4, type, op, comm, &request))

static int is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static void make_mistake(const char *kind, int guilty, MPI_Comm comm) {
    if (is(kind, "root")) {
        if (guilty)
            BCAST(4, 1); /* rank 2: root */
        else
            BCAST(4, 0); /* others: root */
    } else if (is(kind, "count")) {
        if (guilty)
            BCAST(3, 0); /* rank 2: count */
        else
            BCAST(4, 0); /* others: count */
    } else if (is(kind, "type")) {
        if (guilty)
            ALLREDUCE(MPI_FLOAT, MPI_SUM); /* rank 2: type */
        else
            ALLREDUCE(MPI_INT, MPI_SUM); /* others: type */
    } else if (is(kind, "operation")) {
        if (guilty)
            ALLREDUCE(MPI_INT, MPI_MAX); /* rank 2: operation */
        else
            ALLREDUCE(MPI_INT, MPI_SUM); /* others: operation */
    } else if (is(kind, "order")) {
        if (guilty)
            ALLREDUCE(MPI_INT, MPI_SUM); /* rank 2: order */
        else
            BCAST(4, 0); /* others: order */
    } else {
        BCAST(4, 0);
    }
    if (request != MPI_REQUEST_NULL && !persists) MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* Persistent ones aren't started: their initialisation has been compared when this comes back. */
    MPI_Barrier(comm);
    if (persists && request != MPI_REQUEST_NULL) MPI_Request_free(&request);
}

int main(int argc, char **argv) {
    int rank = 0, value = 0;
    const char *kind = argc > 1 ? argv[1] : "none";
    const char *form = argc > 2 ? argv[2] : "blocking";
    MPI_Comm a, b, others;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    blocks = is(form, "blocking");
    persists = is(form, "persistent");
    MPI_Comm_dup(MPI_COMM_WORLD, &a);
    MPI_Comm_set_name(a, "a");
    MPI_Comm_dup(MPI_COMM_WORLD, &b);
    MPI_Comm_set_name(b, "b");
    /* Rank 2 leads this one. */
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, -rank, &others);
    MPI_Comm_set_name(others, "others");
    if (is(kind, "communicators")) {
        if (rank == 2) {
            MPI_Barrier(b); /* rank 2: communicators */
            MPI_Barrier(a);
        } else {
            MPI_Barrier(a); /* others: communicators */
            MPI_Barrier(b);
        }
    } else if (is(kind, "groups")) {
        if (rank == 2) {
            MPI_Barrier(others); /* rank 2: groups */
            MPI_Barrier(a);
        } else {
            MPI_Barrier(a); /* others: groups */
            if (rank == 1) MPI_Barrier(others);
        }
    } else if (is(kind, "finalize")) {
        if (rank != 2) MPI_Barrier(MPI_COMM_WORLD); /* others: finalize */
    } else if (is(kind, "receive")) {
        /* Rank 0 receives what nobody sends: others are told of it, who wait. */
        if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 7, a, MPI_STATUS_IGNORE);
        MPI_Barrier(a); /* others: receive */
    } else {
        make_mistake(kind, rank == 2, a);
    }
    if (!is(kind, "finalize")) {
        MPI_Comm_free(&a);
        MPI_Comm_free(&b);
        MPI_Comm_free(&others);
    }
    MPI_Finalize();
    if (rank == 0) puts("1 cases, 0 wrong");
    return 0;
}
