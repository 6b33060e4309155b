/* What a begin and its end take, and an instrumented function, in nanoseconds: region_cost BATCHES. The least of all
 * batches. */
#include <palmette.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { pairs = 1000 };

__attribute__((no_instrument_function)) static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

__attribute__((noinline)) static void instrumented(void) { __asm__ volatile(""); }
__attribute__((noinline, no_instrument_function)) static void bare(void) { __asm__ volatile(""); }

__attribute__((no_instrument_function)) static void run(const char *what) {
    static const char *const names[] = {"assemble", "solve", "exchange", "output"};
    for (int i = 0; i < pairs; ++i) {
        switch (*what) {
            case 'o':
                palmette_region_begin("solve");
                palmette_region_end("solve");
                break;
            case 'f':
                palmette_region_begin(names[i & 3]);
                palmette_region_end(names[i & 3]);
                break;
            case 'n':
                for (int depth = 0; depth < 4; ++depth) palmette_region_begin(names[depth]);
                for (int depth = 4; depth-- > 0;) palmette_region_end(names[depth]);
                break;
            case 'i':
                instrumented();
                break;
            default:
                bare();
                break;
        }
    }
}

__attribute__((no_instrument_function)) int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int each;
    } cases[] = {{"one name", 1},
                 {"four names by turns", 1},
                 {"nested four deep", 4},
                 {"instrumented function", 1},
                 {"call of a function", 1}};
    const long batches = argc > 1 ? atol(argv[1]) : 1000;
    MPI_Init(&argc, &argv);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; ++i) {
        double least = 1e18;
        for (long batch = 0; batch < batches; ++batch) {
            const double begin = now_ns();
            run(cases[i].name);
            const double took = now_ns() - begin;
            if (took < least) least = took;
        }
        printf("%s: %.1f\n", cases[i].name, least / pairs / cases[i].each);
    }
    MPI_Finalize();
    return 0;
}
