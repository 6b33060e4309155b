/* The command line of tune. */
#ifndef TUNE_OPTIONS_H
#define TUNE_OPTIONS_H

#include "../collbench/measuring.h"

struct options {
    const char* cells; /* a file that rank 0 reads; NULL: no cell */
    struct measuring how;
    int min_rounds, max_rounds;
    bool keep_all;
};

static const char usage[] =
    "Usage: tune [OPTION]...   under mpiexec, with palmette preloaded\n"
    "Times the candidates of each cell, the MPI alone among them, interleaved in one job.\n"
    "  --cells FILE            read by rank 0, a cell a line: COLLECTIVE BYTES ROOT CANDIDATE...; a candidate is an\n"
    "                          algorithm's specification, `table` (what the table chooses) or `mpi`\n"
    "  --seconds S             for all cells together, 60; time that a cell leaves unused goes to later ones\n"
    "  --min-rounds N          rounds before a candidate is judged by its median, 5\n"
    "  --max-rounds N          rounds a cell at most, 60\n"
    "  --keep-all              keep slow candidates, too\n"
    "  --warmup N              warm-up calls of each candidate, 2; of the MPI 6: some switch algorithms after 5\n"
    "  --clock shared|barrier  as in collbench\n"
    "  --wait sleep|spin       for the start: spin only with a core for each rank; default sleep\n"
    "  --window-us U           lead time from the agreement on a common start to that start, at least; 2000\n"
    "  --seed N                of the order within the rounds, 1\n"
    "  --output FILE           JSON lines, written by rank 0; default standard output\n";

/* Set `o` from the command line. Returns NULL, "" after --help, or what is wrong with the option in *at. Does no
 * output. */
static const char* parse_options(struct options* o, int argc, char** argv, const char** at) {
    *o = (struct options){.how = {.seconds = 60, .warmup = 2, .window_s = 2e-3, .seed = 1, .shared_clock = true},
                          .min_rounds = 5,
                          .max_rounds = 60};
    const struct option_row rows[] = {{"cells", TEXT, &o->cells, 0, NULL},
                                      {"min-rounds", COUNT, &o->min_rounds, 1, NULL},
                                      {"max-rounds", COUNT, &o->max_rounds, 1, NULL},
                                      {"keep-all", FLAG, &o->keep_all, 0, NULL}};
    const char* wrong = parse_command_line(rows, sizeof rows / sizeof *rows, &o->how, argc, argv, at);
    if (!wrong && o->min_rounds > o->max_rounds) *at = "--min-rounds", wrong = "more than --max-rounds";
    return wrong;
}

#endif
