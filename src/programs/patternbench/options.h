/* The command line of patternbench. */
#ifndef PATTERNBENCH_OPTIONS_H
#define PATTERNBENCH_OPTIONS_H

#include "../collbench/measuring.h"

static const char usage[] =
    "patternbench [OPTION...]\n"
    "  --messages FILE      messages, as palmette.patterns writes them (repeatable); without it only hosts are listed\n"
    "  --seconds S          time for the calls (2)\n"
    "  --min-iterations N   calls, at least (10)\n"
    "  --max-iterations N   at most (1000)\n"
    "  --warmup N           calls before them (3)\n"
    "  --clock KIND         shared: ranks start at the same time; barrier: after a barrier (shared)\n"
    "  --wait KIND          sleep: oversubscribed cores; spin: a core for each rank (sleep)\n"
    "  --window-us N        lead time from the decision to the start of a call (2000)\n"
    "  --output FILE        JSON lines by rank 0 (standard output)\n";

enum { MOST_FILES = 256 };

struct options {
    const char* messages[MOST_FILES];
    int files;
    struct measuring how;
    int min_calls, max_calls;
};

static const char* add_messages(void* target, char* file, const char** at) {
    (void)at;
    struct options* o = target;
    if (o->files == MOST_FILES) return "more than 256 patterns";
    o->messages[o->files++] = file;
    return NULL;
}

/* Returns NULL, "" where help is asked for, or what is wrong with the option in *at. */
static const char* parse_options(struct options* o, int argc, char** argv, const char** at) {
    *o = (struct options){
        .how = {.seconds = 2, .warmup = 3, .window_s = 2e-3, .shared_clock = true}, .min_calls = 10, .max_calls = 1000};
    const struct option_row rows[] = {{"messages", PARSED, o, 0, add_messages},
                                      {"min-iterations", COUNT, &o->min_calls, 1, NULL},
                                      {"max-iterations", COUNT, &o->max_calls, 1, NULL}};
    const char* wrong = parse_command_line(rows, sizeof rows / sizeof *rows, &o->how, argc, argv, at);
    if (!wrong && o->min_calls > o->max_calls) *at = "--min-iterations", wrong = "more than --max-iterations";
    return wrong;
}

#endif
