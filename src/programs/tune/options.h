/* The command line of tune. */
#ifndef TUNE_OPTIONS_H
#define TUNE_OPTIONS_H

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char* cells; /* a file that rank 0 reads; NULL: no cell */
    double seconds;
    int min_rounds, max_rounds, warmup;
    double window_s;
    uint64_t seed;
    bool shared_clock, spin;
    const char* output; /* NULL: standard output */
};

static const char usage[] =
    "Usage: tune [OPTION]...   under mpiexec, with palmette preloaded\n"
    "Times the candidates of each cell in turns in one job, the MPI alone among them.\n"
    "  --cells FILE            read by rank 0, a cell a line: COLLECTIVE BYTES ROOT CANDIDATE...; a candidate is an\n"
    "                          algorithm's specification, `table` (what the table chooses) or `mpi`\n"
    "  --seconds S             for all cells together, 60; what a cell leaves goes to those after it\n"
    "  --min-rounds N          rounds before a candidate is judged by its median, 5\n"
    "  --max-rounds N          rounds a cell at most, 60\n"
    "  --warmup N              calls of each candidate before, 2; of the MPI 6: some change their mind after 5\n"
    "  --clock shared|barrier  as in collbench\n"
    "  --wait sleep|spin       for the start: spin only with a core for each rank; default sleep\n"
    "  --window-us U           from agreeing on a start to the start, at least; 2000\n"
    "  --seed N                of the order within the rounds, 1\n"
    "  --output FILE           JSON lines, written by rank 0; default standard output\n";

static bool parse_number(const char* text, double low, double high, double* value) {
    char* end;
    errno = 0;
    *value = strtod(text, &end);
    return errno == 0 && end != text && *end == 0 && *value >= low && *value <= high;
}

static bool parse_whole(const char* text, double low, double high, double* value) {
    return parse_number(text, low, high, value) && *value == (double)(long long)*value;
}

static const char* parse_count(int* count, double least) {
    double value;
    if (!parse_whole(optarg, least, 1e6, &value)) return "a whole number, at most 1000000";
    *count = (int)value;
    return NULL;
}

/* Set `o` from the command line. Returns NULL, "" after --help, or what is wrong with the option in *at. Does no output. */
static const char* parse_options(struct options* o, int argc, char** argv, const char** at) {
    static const struct option known[] = {
        {"cells", 1, NULL, 'c'},  {"seconds", 1, NULL, 't'}, {"min-rounds", 1, NULL, 'm'}, {"max-rounds", 1, NULL, 'M'},
        {"warmup", 1, NULL, 'w'}, {"clock", 1, NULL, 'k'},   {"wait", 1, NULL, 'p'},       {"window-us", 1, NULL, 'W'},
        {"seed", 1, NULL, 'S'},   {"output", 1, NULL, 'o'},  {"help", 0, NULL, 'h'},       {NULL, 0, NULL, 0}};
    *o = (struct options){.seconds = 60,
                          .min_rounds = 5,
                          .max_rounds = 60,
                          .warmup = 2,
                          .window_s = 2e-3,
                          .seed = 1,
                          .shared_clock = true};
    opterr = 0;
    double value;
    const char* wrong = NULL;
    for (int option; !wrong && (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        *at = optarg ? optarg : argv[optind - 1];
        switch (option) {
            case 'c':
                o->cells = optarg;
                break;
            case 't':
                if (!parse_number(optarg, 0, 1e6, &o->seconds)) wrong = "--seconds takes a number, 0 or more";
                break;
            case 'm':
                wrong = parse_count(&o->min_rounds, 1);
                break;
            case 'M':
                wrong = parse_count(&o->max_rounds, 1);
                break;
            case 'w':
                wrong = parse_count(&o->warmup, 0);
                break;
            case 'k':
                o->shared_clock = strcmp(optarg, "shared") == 0;
                if (!o->shared_clock && strcmp(optarg, "barrier") != 0) wrong = "--clock takes shared or barrier";
                break;
            case 'p':
                o->spin = strcmp(optarg, "spin") == 0;
                if (!o->spin && strcmp(optarg, "sleep") != 0) wrong = "--wait takes sleep or spin";
                break;
            case 'W':
                if (!parse_number(optarg, 1, 250e3, &value))
                    wrong = "--window-us takes 1 to 250000";
                else
                    o->window_s = value * 1e-6;
                break;
            case 'S':
                if (!parse_whole(optarg, 0, 1e15, &value))
                    wrong = "--seed takes a whole number";
                else
                    o->seed = (uint64_t)value;
                break;
            case 'o':
                o->output = optarg;
                break;
            case 'h':
                return "";
            default:
                wrong = "unknown option, or one without its value; --help lists what there is";
        }
    }
    if (!wrong && optind < argc) *at = argv[optind], wrong = "an argument that belongs to no option";
    if (!wrong && o->min_rounds > o->max_rounds) *at = "--min-rounds", wrong = "more than --max-rounds";
    return wrong;
}

#endif
