/* The command line of composebench. */
#ifndef COMPOSEBENCH_OPTIONS_H
#define COMPOSEBENCH_OPTIONS_H

#include <limits.h>

#include "../collbench/measuring.h"

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
    int cell_count, root, min_rounds, max_rounds;
    double drop;
    struct measuring how;
};

static const char* add_cell(struct options* o, char* text) {
    char* colon = strrchr(text, ':');
    double size = 0;
    if (o->cell_count == MOST_CELLS) return "more than 64 cells";
    if (!colon || !parse_number(colon + 1, 1, INT_MAX / 2, &size)) return "a cell is NAME:BYTES";
    *colon = 0;
    o->cells[o->cell_count++] = (struct compose_cell){.name = text, .size = (size_t)size};
    return NULL;
}

static const char* add_factoring(struct options* o, const char* text) {
    struct compose_cell* cell = o->cell_count ? &o->cells[o->cell_count - 1] : NULL;
    if (!cell) return "a factoring comes behind its cell";
    if (cell->count == MOST_FACTORINGS) return "more than 64 factorings of a cell";
    cell->factorings[cell->count++] = text;
    return NULL;
}

/* Returns NULL, "" where help is asked for, or what is wrong with the option in *at. */
static const char* parse_options(struct options* o, int argc, char** argv, const char** at) {
    static const struct option known[] = {{"cell", 1, NULL, 'c'},
                                          {"factoring", 1, NULL, 'f'},
                                          {"root", 1, NULL, 'r'},
                                          {"drop", 1, NULL, 'd'},
                                          {"min-iterations", 1, NULL, 'n'},
                                          {"max-iterations", 1, NULL, 'N'},
                                          MEASURING_OPTIONS,
                                          {NULL, 0, NULL, 0}};
    *o = (struct options){.min_rounds = 5,
                          .max_rounds = 200,
                          .how = {.seconds = 2, .warmup = 2, .window_s = 2e-3, .seed = 1, .shared_clock = true}};
    opterr = 0;
    const char* wrong = NULL;
    for (int option; !wrong && (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        *at = optarg ? optarg : argv[optind - 1];
        switch (option) {
            case 'c':
                wrong = add_cell(o, optarg);
                break;
            case 'f':
                wrong = add_factoring(o, optarg);
                break;
            case 'd':
                if (!parse_number(optarg, 0, 1e6, &o->drop)) wrong = "--drop takes a number, 0 or more";
                break;
            case 'r':
                wrong = parse_count(&o->root, 0, "--root takes 0 to 1000000");
                break;
            case 'n':
                wrong = parse_count(&o->min_rounds, 1, "--min-iterations takes 1 to 1000000");
                break;
            case 'N':
                wrong = parse_count(&o->max_rounds, 1, "--max-iterations takes 1 to 1000000");
                break;
            default:
                wrong = parse_measuring(&o->how, option);
        }
    }
    if (wrong) return wrong;
    *at = "composebench";
    if (optind < argc) return *at = argv[optind], "an argument that belongs to no option";
    if (o->min_rounds > o->max_rounds) return "--min-iterations is more than --max-iterations";
    return o->cell_count ? NULL : "no --cell is given";
}

#endif
