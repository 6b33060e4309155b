/* operands COLLECTIVE ELEMENTS: one call with an operation of our own that adds, and how it was applied: for each rank
 * CALLS/ELEMENTS. That tells one algorithm from another without a clock. With `order` the operation is a product of
 * matrices, which doesn't commute, and "right" or "wrong" is printed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 4, MODULUS = 10007 };

static int calls, elements;

static void add(void *in, void *inout, int *n, MPI_Datatype *type) {
    (void)type;
    ++calls;
    elements += *n;
    for (int i = 0; i < *n; ++i) ((int *)inout)[i] += ((int *)in)[i];
}

static void multiply(void *in, void *inout, int *n, MPI_Datatype *type) {
    (void)type;
    const int *a = in;
    int *b = inout;
    for (int i = 0; i < *n; ++i, a += SIDE, b += SIDE) {
        const int c[SIDE] = {(a[0] * b[0] + a[1] * b[2]) % MODULUS, (a[0] * b[1] + a[1] * b[3]) % MODULUS,
                             (a[2] * b[0] + a[3] * b[2]) % MODULUS, (a[2] * b[1] + a[3] * b[3]) % MODULUS};
        memcpy(b, c, sizeof c);
    }
}

static void fill(int *m, int n, int rank) {
    for (int i = 0; i < n; ++i, m += SIDE) {
        m[0] = (rank * 7 + i) % 101;
        m[1] = rank + 1;
        m[2] = (rank * rank + 3) % 97;
        m[3] = i % 13 + rank;
    }
}

/* Whether allreduce and reduce keep the order of ranks. */
static int keeps_order(int n, int rank, int ranks) {
    const size_t bytes = (size_t)n * SIDE * sizeof(int);
    int *mine = malloc(bytes), *got = malloc(bytes), *expected = malloc(bytes), *next = malloc(bytes);
    MPI_Datatype matrix;
    MPI_Op product;
    MPI_Type_contiguous(SIDE, MPI_INT, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Op_create(multiply, 0, &product);
    fill(mine, n, rank);
    fill(expected, n, 0);
    for (int r = 1; r < ranks; ++r) {
        fill(next, n, r);
        multiply(expected, next, &n, NULL);
        int *swap = expected;
        expected = next;
        next = swap;
    }
    MPI_Allreduce(mine, got, n, matrix, product, MPI_COMM_WORLD);
    int right = memcmp(got, expected, bytes) == 0, all = 0;
    memset(got, 0, bytes);
    MPI_Reduce(mine, got, n, matrix, product, 0, MPI_COMM_WORLD);
    right = right && (rank != 0 || memcmp(got, expected, bytes) == 0);
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *what = argc > 1 ? argv[1] : "";
    const int n = argc > 2 ? atoi(argv[2]) : 4096;
    int *in = calloc((size_t)n * (size_t)ranks, sizeof(int)), *out = calloc((size_t)n * (size_t)ranks, sizeof(int));
    MPI_Op sum;
    MPI_Op_create(add, 1, &sum);
    for (int i = 0; i < n * ranks; ++i) in[i] = rank + 1;
    if (strcmp(what, "order") == 0) {
        const int right = keeps_order(n, rank, ranks);
        if (rank == 0) puts(right ? "right" : "wrong");
        MPI_Finalize();
        return 0;
    }
    if (strcmp(what, "allreduce") == 0)
        MPI_Allreduce(in, out, n, MPI_INT, sum, MPI_COMM_WORLD);
    else if (strcmp(what, "reduce") == 0)
        MPI_Reduce(in, out, n, MPI_INT, sum, 0, MPI_COMM_WORLD);
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
    const int mine[] = {calls, elements}, expected = ranks * (ranks + 1) / 2;
    int *all = calloc(2 * (size_t)ranks, sizeof(int));
    MPI_Gather(mine, 2, MPI_INT, all, 2, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        for (int r = 0; r < ranks; ++r) printf("%d/%d ", all[2 * r], all[2 * r + 1]);
        puts(out[0] == expected && out[n - 1] == expected ? "right" : "wrong");
    }
    MPI_Finalize();
    return 0;
}
