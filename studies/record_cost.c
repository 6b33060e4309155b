/* What recording an MPI call costs: batches of the same calls with recording on and off by turns (MPI_Pcontrol), in one
 * process. Prints one line a batch: KIND on|off NANOSECONDS per call. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void calls(int n) {
    for (int i = 0; i < n; ++i) {
        int size;
        MPI_Comm_size(MPI_COMM_WORLD, &size);
    }
}

/* A message to this rank itself: two requests made, both completed by one call. */
static void requests(int n) {
    char in[8], out[8] = {0};
    for (int i = 0; i < n; ++i) {
        MPI_Request pair[2];
        MPI_Irecv(in, 8, MPI_CHAR, 0, 1, MPI_COMM_SELF, &pair[0]);
        MPI_Isend(out, 8, MPI_CHAR, 0, 1, MPI_COMM_SELF, &pair[1]);
        MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    }
}

/* The same by blocking calls, three of them. */
static void messages(int n) {
    char in[8], out[8] = {0};
    for (int i = 0; i < n; ++i) {
        MPI_Sendrecv(out, 8, MPI_CHAR, 0, 1, in, 8, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        int flag;
        MPI_Status status;
        MPI_Iprobe(0, 2, MPI_COMM_SELF, &flag, &status);
        MPI_Comm_size(MPI_COMM_SELF, &flag);
    }
}

static const struct {
    const char *name;
    void (*run)(int);
    int n;
} kinds[] = {{"call", calls, 200000}, {"requests", requests, 40000}, {"messages", messages, 40000}};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int pairs = argc > 1 ? atoi(argv[1]) : 20;
    for (int k = 0; k < 3; ++k) {
        for (int i = 0; i < 2 * pairs; ++i) {
            const int on = i % 2 ^ (i / 2 % 2); /* on first in every other pair */
            MPI_Pcontrol(on);
            kinds[k].run(1000);
            const double begin = cpu_s();
            kinds[k].run(kinds[k].n);
            printf("%s %s %.3f\n", kinds[k].name, on ? "on" : "off", (cpu_s() - begin) / kinds[k].n * 1e9);
        }
        MPI_Pcontrol(1);
    }
    MPI_Finalize();
    return 0;
}
