/* The options that collbench and tune have in common: how calls are timed, and where the results go. */
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

/* For getopt_long and the switch of parse_measuring. */
#define MEASURING_OPTIONS                                                                                 \
    {"seconds", 1, NULL, 't'}, {"warmup", 1, NULL, 'w'}, {"clock", 1, NULL, 'k'}, {"wait", 1, NULL, 'p'}, \
        {"window-us", 1, NULL, 'W'}, {"seed", 1, NULL, 'S'}, {"output", 1, NULL, 'o'}, {"help", 0, NULL, 'h'}

static bool parse_number(const char* text, double low, double high, double* value) {
    char* end;
    errno = 0;
    *value = strtod(text, &end);
    return errno == 0 && end != text && *end == 0 && *value >= low && *value <= high;
}

static bool parse_whole(const char* text, double low, double high, double* value) {
    return parse_number(text, low, high, value) && *value == (double)(long long)*value;
}

/* Returns NULL, or `wrong`: optarg is no whole number from `least` to a million. */
static const char* parse_count(int* count, double least, const char* wrong) {
    double value;
    if (!parse_whole(optarg, least, 1e6, &value)) return wrong;
    *count = (int)value;
    return NULL;
}

/* Take one of MEASURING_OPTIONS. Returns NULL, "" for --help, or what is wrong. */
static const char* parse_measuring(struct measuring* m, int option) {
    double value;
    switch (option) {
        case 't':
            return parse_number(optarg, 0, 1e6, &m->seconds) ? NULL : "--seconds takes a number, 0 or more";
        case 'w':
            return parse_count(&m->warmup, 0, "--warmup takes 0 to 1000000");
        case 'k':
            m->shared_clock = strcmp(optarg, "shared") == 0;
            return m->shared_clock || strcmp(optarg, "barrier") == 0 ? NULL : "--clock takes shared or barrier";
        case 'p':
            m->spin = strcmp(optarg, "spin") == 0;
            return m->spin || strcmp(optarg, "sleep") == 0 ? NULL : "--wait takes sleep or spin";
        case 'W':
            if (!parse_number(optarg, 1, 250e3, &value)) return "--window-us takes 1 to 250000";
            m->window_s = value * 1e-6;
            return NULL;
        case 'S':
            if (!parse_whole(optarg, 0, 1e15, &value)) return "--seed takes a whole number";
            m->seed = (uint64_t)value;
            return NULL;
        case 'o':
            m->output = optarg;
            return NULL;
        case 'h':
            return "";
        default:
            return "unknown option, or one without its value; --help lists what there is";
    }
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
