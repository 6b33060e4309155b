/* The command line of patternbench. */
#ifndef PATTERNBENCH_OPTIONS_H
#define PATTERNBENCH_OPTIONS_H

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
    const char* output;
    double seconds, window_s;
    int min_calls, max_calls, warmup;
    bool shared_clock, spin;
};

static bool parse_number(const char* text, double low, double high, double* value) {
    char* end;
    errno = 0;
    *value = strtod(text, &end);
    return errno == 0 && end != text && *end == 0 && *value >= low && *value <= high;
}

/* Returns NULL, "" where help is asked for, or what is wrong with the option in *at. */
static const char* parse_options(struct options* o, int argc, char** argv, const char** at) {
    static const struct option known[] = {{"messages", 1, NULL, 'm'},
                                          {"seconds", 1, NULL, 't'},
                                          {"min-iterations", 1, NULL, 'n'},
                                          {"warmup", 1, NULL, 'w'},
                                          {"max-iterations", 1, NULL, 'N'},
                                          {"clock", 1, NULL, 'k'},
                                          {"wait", 1, NULL, 'p'},
                                          {"window-us", 1, NULL, 'W'},
                                          {"output", 1, NULL, 'o'},
                                          {"help", 0, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *o = (struct options){
        .seconds = 2, .window_s = 2e-3, .min_calls = 10, .max_calls = 1000, .warmup = 3, .shared_clock = true};
    opterr = 0;
    double value = 0;
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        *at = optarg ? optarg : argv[optind - 1];
        bool right = true;
        switch (option) {
            case 'm':
                if (o->files == MOST_FILES) return "more than 256 patterns";
                o->messages[o->files++] = optarg;
                break;
            case 'o':
                o->output = optarg;
                break;
            case 't':
                right = parse_number(optarg, 0, 1e6, &o->seconds);
                break;
            case 'n':
            case 'N':
            case 'w':
                right = parse_number(optarg, option == 'w' ? 0 : 1, 1e6, &value);
                *(option == 'n' ? &o->min_calls : option == 'N' ? &o->max_calls : &o->warmup) = (int)value;
                break;
            case 'k':
                o->shared_clock = strcmp(optarg, "shared") == 0;
                right = o->shared_clock || strcmp(optarg, "barrier") == 0;
                break;
            case 'p':
                o->spin = strcmp(optarg, "spin") == 0;
                right = o->spin || strcmp(optarg, "sleep") == 0;
                break;
            case 'W':
                right = parse_number(optarg, 1, 250e3, &value);
                o->window_s = value * 1e-6;
                break;
            case 'h':
                return "";
            default:
                return "unknown option, or one without its value; --help lists what there is";
        }
        if (!right) return "no value for this option; --help says what it takes";
    }
    if (optind < argc) return *at = argv[optind], "an argument that belongs to no option";
    if (o->min_calls > o->max_calls) return *at = "--min-iterations", "more than --max-iterations";
    return NULL;
}

#endif
