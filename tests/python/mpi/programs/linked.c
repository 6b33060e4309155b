/* A program that is linked with palmette: a broadcast in two lines. Rank 0 prints `right`. */
#include <palmette.h>
#include <stdio.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, all = 0, buffer, code = MPI_SUCCESS;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int64_t count = 1000;
    double data[1000] = {0};
    for (int i = 0; i < 1000 && rank == 0; ++i) data[i] = i;
    palmette_composition *made;
    palmette_plan *plan;
    palmette_run *run;
    code |= palmette_composition_create(ranks, 1, &count, 1, MPI_DOUBLE, &made);
    code |= palmette_composition_buffer(made, "data", &buffer);
    code |= palmette_composition_multicast(made, 0, NULL, 0, buffer, 0, 1, buffer);
    code |= palmette_plan_make(made, MPI_COMM_WORLD, "pipeline=4", &plan);
    void *buffers[] = {data};
    code |= palmette_bind(plan, buffers, 1, &run);
    code |= palmette_start(run) | palmette_wait(run);
    int wrong = code != MPI_SUCCESS || data[999] != 999;
    palmette_run_free(run);
    palmette_plan_free(plan);
    palmette_composition_free(made);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) puts(all ? "wrong" : "right");
    MPI_Finalize();
    return all != 0;
}
