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
    "Times the candidates of each cell in turns in one job, the MPI alone among them.\n"
    "  --cells FILE            read by rank 0, a cell a line: COLLECTIVE BYTES ROOT CANDIDATE...; a candidate is an\n"
    "                          algorithm's specification, `table` (what the table chooses) or `mpi`\n"
    "  --seconds S             for all cells together, 60; what a cell leaves goes to those after it\n"
    "  --min-rounds N          rounds before a candidate is judged by its median, 5\n"
    "  --max-rounds N          rounds a cell at most, 60\n"
    "  --keep-all              go on with candidates that are behind, too\n"
    "  --warmup N              calls of each candidate before, 2; of the MPI 6: some change their mind after 5\n"
    "  --clock shared|barrier  as in collbench\n"
    "  --wait sleep|spin       for the start: spin only with a core for each rank; default sleep\n"
    "  --window-us U           from agreeing on a start to the start, at least; 2000\n"
    "  --seed N                of the order within the rounds, 1\n"
    "  --output FILE           JSON lines, written by rank 0; default standard output\n";

/* Set `o` from the command line. Returns NULL, "" after --help, or what is wrong with the option in *at. Does no
 * output. */
static const char* parse_options(struct options* o, int argc, char** argv, const char** at) {
    static const struct option known[] = {{"cells", 1, NULL, 'c'},
                                          {"min-rounds", 1, NULL, 'm'},
                                          {"max-rounds", 1, NULL, 'M'},
                                          {"keep-all", 0, NULL, 'K'},
                                          MEASURING_OPTIONS,
                                          {NULL, 0, NULL, 0}};
    *o = (struct options){.how = {.seconds = 60, .warmup = 2, .window_s = 2e-3, .seed = 1, .shared_clock = true},
                          .min_rounds = 5,
                          .max_rounds = 60};
    opterr = 0;
    const char* wrong = NULL;
    for (int option; !wrong && (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        *at = optarg ? optarg : argv[optind - 1];
        switch (option) {
            case 'c':
                o->cells = optarg;
                break;
            case 'm':
                wrong = parse_count(&o->min_rounds, 1, "--min-rounds takes 1 to 1000000");
                break;
            case 'M':
                wrong = parse_count(&o->max_rounds, 1, "--max-rounds takes 1 to 1000000");
                break;
            case 'K':
                o->keep_all = true;
                break;
            default:
                wrong = parse_measuring(&o->how, option);
        }
    }
    if (!wrong && optind < argc) *at = argv[optind], wrong = "an argument that belongs to no option";
    if (!wrong && o->min_rounds > o->max_rounds) *at = "--min-rounds", wrong = "more than --max-rounds";
    return wrong;
}

#endif
