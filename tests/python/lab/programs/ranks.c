/* ranks [barriers COUNT | sleep SECONDS]: rank 0 prints "RANK HOST PRELOAD-VARIABLE" for each rank; with `barriers`
 * then the mean time of a barrier in microseconds: the best of ten batches of COUNT, so that a busy moment of the
 * machine goes by. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, size;
    char host[256], line[512], *lines = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host);
    const char *marker = getenv("LAB_TEST_MARKER");
    snprintf(line, sizeof line, "%d %s %s", rank, host, marker ? marker : "-");
    if (rank == 0) lines = calloc((size_t)size, sizeof line);
    MPI_Gather(line, sizeof line, MPI_CHAR, lines, sizeof line, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < size; ++i) puts(lines + (size_t)i * sizeof line);
    fflush(stdout);
    if (argc > 2 && strcmp(argv[1], "barriers") == 0) {
        const int count = atoi(argv[2]);
        for (int i = 0; i < 20; ++i) MPI_Barrier(MPI_COMM_WORLD);
        double best = 1e9;
        for (int batch = 0; batch < 10; ++batch) {
            const double start = MPI_Wtime();
            for (int i = 0; i < count; ++i) MPI_Barrier(MPI_COMM_WORLD);
            const double mean = (MPI_Wtime() - start) / count;
            if (mean < best) best = mean;
        }
        if (rank == 0) printf("barrier %.1f us\n", best * 1e6);
    }
    if (argc > 2 && strcmp(argv[1], "sleep") == 0) {
        if (rank == 0) puts("sleeping");
        fflush(stdout);
        sleep((unsigned)atoi(argv[2]));
    }
    free(lines);
    MPI_Finalize();
    return 0;
}
