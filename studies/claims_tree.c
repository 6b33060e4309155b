/* Small allreduces through a tree of switches, and among hosts, in simulated time (SMPI): claims.py starts it.

   Ranks 0 to n - 1 are a node's leaders, the ranks behind them the switches, leaves first, the top one last; each leaf
   has RADIX nodes. In the mode `network` vectors go up in chunks of PAYLOAD bytes, at most WINDOW of a node under way,
   as a switch with so many slots for a group takes them; a switch sends up what it has of all children, the top one
   sends it down again. In the mode `hosts` leaders double recursively. For each size rank 0 prints

       BYTES SECONDS     from a common start to the end of the last leader

   Usage: claims_tree network|hosts NODES RADIX SEND_S RECEIVE_S SWITCH_S PAYLOAD WINDOW BYTES... */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double send_s, receive_s, switch_s;
static int nodes, radix, leaves, payload, window, rank;
static char buffer[1 << 16], other[1 << 16];

static void busy(double seconds) {
    const struct timespec span = {0, (long)(1e9 * seconds + 0.5)};
    if (span.tv_nsec > 0) nanosleep(&span, NULL);
}

/* All leave at the same simulated time. */
static double start(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double at = ceil(MPI_Wtime() * 1e3 + 1) * 1e-3;
    busy(at - MPI_Wtime());
    return at;
}

static int least(int a, int b) { return a < b ? a : b; }
static int length(int chunk, int bytes) { return least(payload, bytes - chunk * payload); }
static int top(void) { return nodes + (leaves > 1 ? leaves : 0); }
static int parent(int of) { return of < nodes ? nodes + of / radix : of == top() ? -1 : top(); }
static int child(int of, int i) { return leaves > 1 && of == top() ? nodes + i : (of - nodes) * radix + i; }
static int children(int of) { return leaves > 1 && of == top() ? leaves : least(radix, nodes - (of - nodes) * radix); }

static void leader(int bytes) {
    const int chunks = (bytes + payload - 1) / payload;
    MPI_Request *sent = malloc(sizeof *sent * (size_t)chunks);
    for (int done = 0, posted = 0; done < chunks; ++done) {
        for (; posted < chunks && posted < done + window; ++posted) {
            busy(send_s);
            MPI_Isend(buffer, length(posted, bytes), MPI_BYTE, parent(rank), posted, MPI_COMM_WORLD, &sent[posted]);
        }
        MPI_Recv(other, length(done, bytes), MPI_BYTE, parent(rank), done, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        busy(receive_s);
    }
    MPI_Waitall(chunks, sent, MPI_STATUSES_IGNORE);
    free(sent);
}

/* Results pass downwards while chunks that follow come up. */
static void turn(int bytes) {
    const int chunks = (bytes + payload - 1) / payload, below = children(rank), above = parent(rank);
    MPI_Request *from = malloc(sizeof *from * (size_t)below),
                *out = malloc(sizeof *out * (size_t)(chunks * (below + 1)));
    int sent = 0, down = 0;
    MPI_Request result = MPI_REQUEST_NULL;
    for (int up = 0; up < chunks || down < chunks;) {
        const int may = up < chunks;
        if (may)
            for (int i = 0; i < below; ++i)
                MPI_Irecv(buffer, payload, MPI_BYTE, child(rank, i), up, MPI_COMM_WORLD, &from[i]);
        int left = may ? below : 0, complete = 0;
        while (!complete && (left > 0 || !may)) {
            if (above >= 0 && down < up && result == MPI_REQUEST_NULL)
                MPI_Irecv(other, payload, MPI_BYTE, above, down, MPI_COMM_WORLD, &result);
            MPI_Request both[2] = {MPI_REQUEST_NULL, result};
            int which = 1, at = 0;
            if (left > 0) {
                MPI_Request *wanted = malloc(sizeof *wanted * (size_t)(below + 1));
                memcpy(wanted, from, sizeof *wanted * (size_t)below);
                wanted[below] = result;
                MPI_Waitany(below + 1, wanted, &at, MPI_STATUS_IGNORE);
                which = at == below;
                if (which)
                    result = wanted[below];
                else
                    from[at] = wanted[at], --left;
                free(wanted);
            } else {
                MPI_Wait(&both[1], MPI_STATUS_IGNORE);
                result = MPI_REQUEST_NULL;
            }
            if (which) {
                for (int i = 0; i < below; ++i)
                    MPI_Isend(other, length(down, bytes), MPI_BYTE, child(rank, i), down, MPI_COMM_WORLD, &out[sent++]);
                ++down;
                complete = !may;
            }
            if (may && left == 0) complete = 1;
        }
        if (!may) continue;
        busy(switch_s);
        if (above >= 0) {
            MPI_Isend(buffer, length(up, bytes), MPI_BYTE, above, up, MPI_COMM_WORLD, &out[sent++]);
        } else {
            for (int i = 0; i < below; ++i)
                MPI_Isend(buffer, length(up, bytes), MPI_BYTE, child(rank, i), up, MPI_COMM_WORLD, &out[sent++]);
            ++down;
        }
        ++up;
    }
    MPI_Waitall(sent, out, MPI_STATUSES_IGNORE);
    free(out);
    free(from);
}

/* Ranks beyond a power of two give theirs to a neighbour before, and get the result behind. */
static void exchange(int with, int bytes, int sends, int receives) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (sends) {
        busy(send_s);
        MPI_Isend(buffer, bytes, MPI_BYTE, with, 0, MPI_COMM_WORLD, &request);
    }
    if (receives) {
        MPI_Recv(other, bytes, MPI_BYTE, with, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        busy(receive_s);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void doubling(int bytes) {
    int power = 1;
    while (2 * power <= nodes) power *= 2;
    const int extra = nodes - power;
    if (rank < 2 * extra && rank % 2) {
        exchange(rank - 1, bytes, 1, 0);
        exchange(rank - 1, bytes, 0, 1);
        return;
    }
    if (rank < 2 * extra) exchange(rank + 1, bytes, 0, 1);
    const int me = rank < 2 * extra ? rank / 2 : rank - extra;
    for (int bit = 1; bit < power; bit *= 2) {
        const int with = me ^ bit;
        exchange(with < extra ? 2 * with : with + extra, bytes, 1, 1);
    }
    if (rank < 2 * extra) exchange(rank + 1, bytes, 1, 0);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc < 10) return 2;
    const int network = argv[1][0] == 'n';
    nodes = atoi(argv[2]), radix = atoi(argv[3]), leaves = (nodes + radix - 1) / radix;
    send_s = atof(argv[4]), receive_s = atof(argv[5]), switch_s = atof(argv[6]);
    payload = atoi(argv[7]), window = atoi(argv[8]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int a = 9; a < argc; ++a) {
        const int bytes = atoi(argv[a]);
        const double from = start();
        if (network && rank >= nodes)
            turn(bytes);
        else if (network)
            leader(bytes);
        else if (rank < nodes)
            doubling(bytes);
        double took = rank < nodes ? MPI_Wtime() - from : 0, longest = 0;
        MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0) printf("%d %.12g\n", bytes, longest);
    }
    MPI_Finalize();
    return 0;
}
