/* The command line of composebench. */
#ifndef COMPOSEBENCH_OPTIONS_H
#define COMPOSEBENCH_OPTIONS_H

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "composebench --cell NAME:BYTES [--factoring TEXT...] [--cell ...] [OPTION...]\n"
    "  --cell NAME:BYTES    a composition by name; the factorings behind it are measured beside the MPI's collective\n"
    "  --factoring TEXT     as palmette_plan_make takes it: 'method=ring,direct pipeline=16'\n"
    "  --root R             (0)\n"
    "  --seconds S          time for a cell (2)\n"
    "  --min-iterations N   rounds a cell, at least (5)\n"
    "  --max-iterations N   at most (200)\n"
    "  --warmup N           rounds before them (2)\n"
    "  --drop RATIO         leave out what is slower than the fastest by more, from the third round on (0: nothing)\n"
    "  --clock KIND         shared or barrier (shared)\n"
    "  --wait KIND          sleep or spin (sleep)\n"
    "  --seed N             for the order of each round (1)\n"
    "  --output FILE        JSON lines by rank 0 (standard output)\n";

enum { MOST_CELLS = 64, MOST_FACTORINGS = 64 };

struct compose_cell {
    char* name;
    size_t size;
    const char* factorings[MOST_FACTORINGS];
    int count;
};

struct options {
    struct compose_cell cells[MOST_CELLS];
    int cell_count, root, min_rounds, max_rounds, warmup;
    double seconds, drop;
    bool shared_clock, spin;
    uint64_t seed;
    const char* output;
};

static bool parse_number(const char* text, double low, double high, double* value) {
    char* end;
    errno = 0;
    *value = strtod(text, &end);
    return errno == 0 && end != text && *end == 0 && *value >= low && *value <= high;
}

static const char* add_cell(struct options* o, char* text) {
    char* colon = strrchr(text, ':');
    double size = 0;
    if (o->cell_count == MOST_CELLS) return "more than 64 cells";
    if (!colon || !parse_number(colon + 1, 1, INT_MAX / 2, &size)) return "a cell is NAME:BYTES";
    *colon = 0;
    o->cells[o->cell_count++] = (struct compose_cell){.name = text, .size = (size_t)size};
    return NULL;
}

/* Returns NULL, "" where help is asked for, or what is wrong with the option in *at. */
static const char* parse_options(struct options* o, int argc, char** argv, const char** at) {
    static const struct option known[] = {
        {"cell", 1, NULL, 'c'},    {"factoring", 1, NULL, 'f'}, {"root", 1, NULL, 'r'},
        {"seconds", 1, NULL, 't'}, {"drop", 1, NULL, 'd'},      {"min-iterations", 1, NULL, 'n'},
        {"warmup", 1, NULL, 'w'},  {"clock", 1, NULL, 'k'},     {"max-iterations", 1, NULL, 'N'},
        {"wait", 1, NULL, 'p'},    {"seed", 1, NULL, 'S'},      {"output", 1, NULL, 'o'},
        {"help", 0, NULL, 'h'},    {NULL, 0, NULL, 0}};
    *o = (struct options){
        .seconds = 2, .min_rounds = 5, .max_rounds = 200, .warmup = 2, .shared_clock = true, .seed = 1};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        *at = optarg ? optarg : argv[optind - 1];
        const char* wrong = NULL;
        double value = 0;
        bool right = true;
        switch (option) {
            case 'c':
                wrong = add_cell(o, optarg);
                break;
            case 'f': {
                struct compose_cell* cell = o->cell_count ? &o->cells[o->cell_count - 1] : NULL;
                if (!cell || cell->count == MOST_FACTORINGS)
                    wrong = cell ? "more than 64 factorings of a cell" : "a factoring comes behind its cell";
                else
                    cell->factorings[cell->count++] = optarg;
                break;
            }
            case 't':
                right = parse_number(optarg, 0, 1e6, &o->seconds);
                break;
            case 'd':
                right = parse_number(optarg, 0, 1e6, &o->drop);
                break;
            case 'n':
            case 'N':
            case 'w':
            case 'r':
                right = parse_number(optarg, option == 'w' || option == 'r' ? 0 : 1, 1e6, &value);
                *(option == 'n'   ? &o->min_rounds
                  : option == 'N' ? &o->max_rounds
                  : option == 'w' ? &o->warmup
                                  : &o->root) = (int)value;
                break;
            case 'S':
                right = parse_number(optarg, 0, 1e15, &value);
                o->seed = (uint64_t)value;
                break;
            case 'k':
                o->shared_clock = strcmp(optarg, "shared") == 0;
                right = o->shared_clock || strcmp(optarg, "barrier") == 0;
                break;
            case 'p':
                o->spin = strcmp(optarg, "spin") == 0;
                right = o->spin || strcmp(optarg, "sleep") == 0;
                break;
            case 'o':
                o->output = optarg;
                break;
            case 'h':
                return "";
            default:
                wrong = "unknown option, or one without its value; --help lists what there is";
        }
        if (!right) wrong = "no value for this option; --help says what it takes";
        if (wrong) return wrong;
    }
    *at = "composebench";
    if (optind < argc) return *at = argv[optind], "an argument that belongs to no option";
    if (o->min_rounds > o->max_rounds) return "--min-iterations is more than --max-iterations";
    return o->cell_count ? NULL : "no --cell is given";
}

#endif
