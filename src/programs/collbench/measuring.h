/* Command lines of the benchmark programs, and their shared options: timing of calls, and output. */
#ifndef COLLBENCH_MEASURING_H
#define COLLBENCH_MEASURING_H

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../program.h"
#include "timing.h"

struct measuring {
    double seconds;
    int warmup;
    double window_s;
    uint64_t seed;
    bool shared_clock, spin;
    const char* output; /* NULL: standard output */
};

static bool parse_number(const char* text, double low, double high, double* value) {
    char* end;
    errno = 0;
    *value = strtod(text, &end);
    return errno == 0 && end != text && *end == 0 && *value >= low && *value <= high;
}

static bool parse_whole(const char* text, double low, double high, double* value) {
    return parse_number(text, low, high, value) && *value == (double)(long long)*value;
}

/* --- command lines ---
 *
 * A program lists its options as rows; what all programs have in common, how calls are timed and where results go, is
 * appended. An error is a text without the option's value, which *at points to. Nothing here writes any output. */

enum option_kind { COUNT, NUMBER, TEXT, FLAG, PARSED };

struct option_row {
    const char* name;
    enum option_kind kind;
    void* target;                                                     /* int, double, const char* or bool, by kind */
    int least;                                                        /* of a COUNT or NUMBER */
    const char* (*parse)(void* target, char* value, const char** at); /* of what is PARSED; NULL: fine */
};

enum { MOST_ROWS = 32 };

static const char* parse_clock(void* target, char* value, const char** at) {
    (void)at;
    bool* shared = target;
    *shared = strcmp(value, "shared") == 0;
    return *shared || strcmp(value, "barrier") == 0 ? NULL : "--clock takes shared or barrier";
}

static const char* parse_wait(void* target, char* value, const char** at) {
    (void)at;
    bool* spin = target;
    *spin = strcmp(value, "spin") == 0;
    return *spin || strcmp(value, "sleep") == 0 ? NULL : "--wait takes sleep or spin";
}

static const char* parse_window(void* target, char* value, const char** at) {
    (void)at;
    double us;
    if (!parse_number(value, 1, 250e3, &us)) return "--window-us takes 1 to 250000";
    *(double*)target = us * 1e-6;
    return NULL;
}

static const char* parse_seed(void* target, char* value, const char** at) {
    (void)at;
    double seed;
    if (!parse_whole(value, 0, 1e15, &seed)) return "--seed takes a whole number";
    *(uint64_t*)target = (uint64_t)seed;
    return NULL;
}

static const char* take_option(const struct option_row* row, char* value, const char** at) {
    static char wrong[80];
    double number;
    switch (row->kind) {
        case COUNT:
            snprintf(wrong, sizeof wrong, "--%s takes %d to 1000000", row->name, row->least);
            if (!parse_whole(value, row->least, 1e6, &number)) return wrong;
            *(int*)row->target = (int)number;
            return NULL;
        case NUMBER:
            snprintf(wrong, sizeof wrong, "--%s takes a number, %d or more", row->name, row->least);
            return parse_number(value, row->least, 1e6, row->target) ? NULL : wrong;
        case TEXT:
            *(const char**)row->target = value;
            return NULL;
        case FLAG:
            *(bool*)row->target = true;
            return NULL;
        default:
            return row->parse(row->target, value, at);
    }
}

/* Sets the targets of `rows` and `m` from the command line. Returns NULL, "" after --help, or what is wrong with the
 * option in *at. */
static const char* parse_command_line(const struct option_row* rows, int count, struct measuring* m, int argc,
                                      char** argv, const char** at) {
    const struct option_row common[] = {{"seconds", NUMBER, &m->seconds, 0, NULL},
                                        {"warmup", COUNT, &m->warmup, 0, NULL},
                                        {"clock", PARSED, &m->shared_clock, 0, parse_clock},
                                        {"wait", PARSED, &m->spin, 0, parse_wait},
                                        {"window-us", PARSED, &m->window_s, 0, parse_window},
                                        {"seed", PARSED, &m->seed, 0, parse_seed},
                                        {"output", TEXT, &m->output, 0, NULL}};
    enum { COMMON = sizeof common / sizeof *common };
    struct option known[MOST_ROWS + COMMON + 2] = {{"help", 0, NULL, 'h'}};
    for (int i = 0; i < count + COMMON; ++i) {
        const struct option_row* row = i < count ? &rows[i] : &common[i - count];
        known[i + 1] = (struct option){row->name, row->kind != FLAG, NULL, 256 + i};
    }
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        *at = optarg ? optarg : argv[optind - 1];
        if (option == 'h') return "";
        if (option < 256) return "unknown option, or one without its value; --help lists what there is";
        const int i = option - 256;
        const char* wrong = take_option(i < count ? &rows[i] : &common[i - count], optarg, at);
        if (wrong) return wrong;
    }
    if (optind < argc) return *at = argv[optind], "an argument that belongs to no option";
    return NULL;
}

/* Where rank 0 writes; NULL on the others. */
static FILE* open_output(const struct measuring* m) {
    FILE* out = my_rank ? NULL : m->output ? fopen(m->output, "w") : stdout;
    if (my_rank == 0 && !out) stop("can't write %s; choose another file with --output", m->output);
    return out;
}

static struct timing timing_of(const struct measuring* m) {
    return (struct timing){
        .shared_clock = m->shared_clock, .spin = m->spin, .window_s = m->window_s, .shortest_window_s = m->window_s};
}

#endif
