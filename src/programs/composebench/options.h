/* The command line of composebench. */
#ifndef COMPOSEBENCH_OPTIONS_H
#define COMPOSEBENCH_OPTIONS_H

#include <limits.h>

#include "../collbench/measuring.h"

static const char usage[] =
    "composebench --cell NAME:BYTES [--factoring TEXT...] [--cell ...] [OPTION...]\n"
    "  --cell NAME:BYTES    a composition by name; the factorings after it are compared with the MPI's collective\n"
    "  --factoring TEXT     as palmette_plan_make takes it: 'method=ring,direct pipeline=16'\n"
    "  --root R             (0)\n"
    "  --seconds S          time for a cell (2)\n"
    "  --min-iterations N   rounds a cell, at least (5)\n"
    "  --max-iterations N   at most (200)\n"
    "  --warmup N           rounds before them (2)\n"
    "  --drop RATIO         drop what is slower than the fastest by more, from the third round on (0: nothing)\n"
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

static const char* add_cell(void* target, char* text, const char** at) {
    (void)at;
    struct options* o = target;
    char* colon = strrchr(text, ':');
    double size = 0;
    if (o->cell_count == MOST_CELLS) return "more than 64 cells";
    if (!colon || !parse_number(colon + 1, 1, INT_MAX / 2, &size)) return "a cell is NAME:BYTES";
    *colon = 0;
    o->cells[o->cell_count++] = (struct compose_cell){.name = text, .size = (size_t)size};
    return NULL;
}

static const char* add_factoring(void* target, char* text, const char** at) {
    (void)at;
    struct options* o = target;
    struct compose_cell* cell = o->cell_count ? &o->cells[o->cell_count - 1] : NULL;
    if (!cell) return "a factoring comes behind its cell";
    if (cell->count == MOST_FACTORINGS) return "more than 64 factorings of a cell";
    cell->factorings[cell->count++] = text;
    return NULL;
}

/* Returns NULL, "" where help is asked for, or what is wrong with the option in *at. */
static const char* parse_options(struct options* o, int argc, char** argv, const char** at) {
    *o = (struct options){.min_rounds = 5,
                          .max_rounds = 200,
                          .how = {.seconds = 2, .warmup = 2, .window_s = 2e-3, .seed = 1, .shared_clock = true}};
    const struct option_row rows[] = {{"cell", PARSED, o, 0, add_cell},
                                      {"factoring", PARSED, o, 0, add_factoring},
                                      {"drop", NUMBER, &o->drop, 0, NULL},
                                      {"root", COUNT, &o->root, 0, NULL},
                                      {"min-iterations", COUNT, &o->min_rounds, 1, NULL},
                                      {"max-iterations", COUNT, &o->max_rounds, 1, NULL}};
    const char* wrong = parse_command_line(rows, sizeof rows / sizeof *rows, &o->how, argc, argv, at);
    if (wrong) return wrong;
    *at = "composebench";
    if (o->min_rounds > o->max_rounds) return "--min-iterations is more than --max-iterations";
    return o->cell_count ? NULL : "no --cell is given";
}

#endif
