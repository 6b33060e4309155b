/* The command line of patternbench. */
#ifndef PATTERNBENCH_OPTIONS_H
#define PATTERNBENCH_OPTIONS_H

#include "../collbench/measuring.h"

static const char usage[] =
    "patternbench [OPTION...]\n"
    "  --messages FILE      what is sent, as palmette.patterns writes it (repeatable); without it only hosts are told\n"
    "  --seconds S          time for the calls (2)\n"
    "  --min-iterations N   calls, at least (10)\n"
    "  --max-iterations N   at most (1000)\n"
    "  --warmup N           calls before them (3)\n"
    "  --clock KIND         shared: ranks start at the same time; barrier: after a barrier (shared)\n"
    "  --wait KIND          sleep: ranks share cores; spin: each has its own (sleep)\n"
    "  --window-us N        from the decision to the start of a call (2000)\n"
    "  --output FILE        JSON lines by rank 0 (standard output)\n";

enum { MOST_FILES = 256 };

struct options {
    const char* messages[MOST_FILES];
    int files;
    struct measuring how;
    int min_calls, max_calls;
};

/* Returns NULL, "" where help is asked for, or what is wrong with the option in *at. */
static const char* parse_options(struct options* o, int argc, char** argv, const char** at) {
    static const struct option known[] = {{"messages", 1, NULL, 'm'},
                                          {"min-iterations", 1, NULL, 'n'},
                                          {"max-iterations", 1, NULL, 'N'},
                                          MEASURING_OPTIONS,
                                          {NULL, 0, NULL, 0}};
    *o = (struct options){
        .how = {.seconds = 2, .warmup = 3, .window_s = 2e-3, .shared_clock = true}, .min_calls = 10, .max_calls = 1000};
    opterr = 0;
    const char* wrong = NULL;
    for (int option; !wrong && (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        *at = optarg ? optarg : argv[optind - 1];
        switch (option) {
            case 'm':
                if (o->files == MOST_FILES) return "more than 256 patterns";
                o->messages[o->files++] = optarg;
                break;
            case 'n':
                wrong = parse_count(&o->min_calls, 1, "--min-iterations takes 1 to 1000000");
                break;
            case 'N':
                wrong = parse_count(&o->max_calls, 1, "--max-iterations takes 1 to 1000000");
                break;
            default:
                wrong = parse_measuring(&o->how, option);
        }
    }
    if (!wrong && optind < argc) *at = argv[optind], wrong = "an argument that belongs to no option";
    if (!wrong && o->min_calls > o->max_calls) *at = "--min-iterations", wrong = "more than --max-iterations";
    return wrong;
}

#endif
