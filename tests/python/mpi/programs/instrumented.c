/* Functions that tell of themselves (-finstrument-functions): what is called how often, it prints itself. */
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static jmp_buf back;
static long leaves, branches;

__attribute__((noinline)) long leaf(long value) {
    ++leaves;
    return value + 1;
}

__attribute__((noinline)) long branch(long depth) {
    ++branches;
    if (depth == 0) return leaf(0);
    return branch(depth - 1) + leaf(depth);
}

__attribute__((noinline)) void jumps(void) { longjmp(back, 1); }

__attribute__((noinline)) void catches(void) {
    if (setjmp(back) == 0) jumps();
    leaf(1);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const long count = argc > 1 ? atol(argv[1]) : 1;
    long sum = 0;
    for (long i = 0; i < count; ++i) sum += branch(3);
    catches();
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    printf("leaf %ld branch %ld\n", leaves, branches);
    MPI_Finalize();
    return 0;
}
