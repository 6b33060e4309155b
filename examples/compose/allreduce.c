/* An allreduce as a composition, made once and run many times, whose sums are checked.
 *
 *     mpicc $(palmette compose --cflags) allreduce.c $(palmette compose --libs mpich) -o allreduce
 *     mpiexec -n 4 ./allreduce
 */
#include <mpi.h>
#include <palmette.h>
#include <stdio.h>
#include <stdlib.h>

enum { steps = 10 };

static void check(int code) {
    if (code == MPI_SUCCESS) return;
    fprintf(stderr, "%s\n", palmette_error());
    MPI_Abort(MPI_COMM_WORLD, code);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 0, wrong = 0, total = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* Counts are int64_t, whatever MPI's own calls take. */
    const int64_t count = 4096;
    double *mine = calloc((size_t)count, sizeof(double));
    double *sums = calloc((size_t)count, sizeof(double));

    palmette_composition *sum = NULL;
    check(palmette_composition_named("allreduce", ranks, 0, &count, 1, MPI_DOUBLE, MPI_SUM, &sum));
    palmette_plan *plan = NULL;
    /* NULL: the levels of the machine that palmette finds; "hierarchy=2:2 method=ring,direct" names others. */
    check(palmette_plan_make(sum, MPI_COMM_WORLD, NULL, &plan));
    void *buffers[] = {mine, sums};
    palmette_run *run = NULL;
    check(palmette_bind(plan, buffers, 2, &run));

    for (int step = 0; step < steps; ++step) {
        for (int64_t i = 0; i < count; ++i) mine[i] = (double)(step + rank) + (double)i;
        check(palmette_start(run));
        /* The program may compute here. */
        check(palmette_wait(run));
        for (int64_t i = 0; i < count; ++i) wrong += sums[i] != ranks * (double)(step + i) + 0.5 * ranks * (ranks - 1);
    }
    palmette_run_free(run);
    palmette_plan_free(plan);
    palmette_composition_free(sum);
    free(mine), free(sums);

    MPI_Reduce(&wrong, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d sums of %d ranks: %s\n", steps, ranks, total == 0 ? "right" : "WRONG");
    MPI_Finalize();
    return rank == 0 && total != 0;
}
