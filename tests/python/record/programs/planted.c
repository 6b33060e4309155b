/* Loops and inlined calls for test_structure.py. A line with "loop NAME" is a loop's; "in WORDS" says what is around a
   statement, from the outside in: functions and names of loops. */
#include <stdlib.h>

struct node {
    double value;
    struct node *next;
};

__attribute__((noinline)) void sink(double x) { __asm__ volatile("" : : "x"(x) : "memory"); }

static inline __attribute__((always_inline)) double row_sum(const double *row, int n) {
    double sum = 0;
    for (int j = 0; j < n; j++) /* loop row */
        sum += row[j] * row[j]; /* in matrix_sum rows row_sum row */
    return sum;
}

__attribute__((noinline)) double matrix_sum(const double *a, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) { /* loop rows */
        sum += row_sum(a + (long)i * n, n);
        sink(sum); /* in matrix_sum rows */
    }
    return sum;
}

__attribute__((noinline)) void stencil(double *restrict a, const double *restrict b, int n) {
    for (int i = 1; i < n - 1; i++) {                                                      /* loop i */
        for (int j = 1; j < n - 1; j++) {                                                  /* loop j */
            a[(long)i * n + j] = 0.25 * (b[(long)i * n + j - 1] + b[(long)i * n + j + 1]); /* in stencil i j */
        }
        sink(a[i]); /* in stencil i */
    }
    sink(a[0]); /* in stencil */
}

__attribute__((noinline)) double list_sum(const struct node *node) {
    double sum = 0;
    while (node != NULL) {  /* loop list */
        sum += node->value; /* in list_sum list */
        node = node->next;
    }
    return sum;
}

__attribute__((noinline)) double newton(double x) {
    double y = x, before;
    do {
        before = y;
        y = 0.5 * (y + x / y); /* in newton until */
    } while (y < before); /* loop until */
    return y;
}

__attribute__((noinline)) long interpret(const unsigned char *code, long n) {
    long state = 0;
    for (long at = 0; at < n; at++) { /* loop code */
        // clang-format off
        switch (code[at]) {
            case 0: state += 3; break; /* in interpret code */
            case 1: state ^= at; break;
            case 2: state *= 5; break;
            case 3: sink((double)state); break; /* in interpret code */
            case 4: state -= at; break;
            case 5: state = ~state; break;
            case 6: state <<= 1; break;
            case 7:
                for (long i = 0; i < state; i++) /* loop inner */
                    sink((double)i);             /* in interpret code inner */
                break;
            default: continue;
        }
        // clang-format on
        if (state < 0) break;
    }
    return state;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 64;
    double *a = calloc((size_t)n * n, sizeof *a), *b = calloc((size_t)n * n, sizeof *b);
    struct node last = {1, NULL}, first = {2, &last};
    stencil(a, b, n);
    sink(matrix_sum(b, n) + list_sum(&first) + newton(n) + (double)interpret((unsigned char *)a, n));
    free(a);
    free(b);
    return 0;
}
