/* A request of the dialogue: one line that names an experiment, its parameters and the pairs of ranks.
 *
 *     pingpong BYTES TRIPS A:B...       half of a round trip; all pairs concurrently
 *     quartiles BYTES TRIPS A:B...      the same: lower quartile, median and upper quartile of each pair
 *     star BYTES TRIPS A:B A:C...       the same, of one rank with others in turn: minimum, lower quartile and
 *                                       median of each
 *     overhead BYTES COUNT WAIT A:B...  time in a send, and in the receive of a message that arrived WAIT seconds ago
 *     burst BYTES COUNT TRIPS A:B...    time of COUNT back-to-back sends and the answer to the last
 *     stream BYTES WARM SECONDS A:B...  bytes per second of messages of BYTES; all flows concurrently
 *     memory BYTES SECONDS R:R...       bytes per second copied, then reduced, by rank R in its own memory
 *     end
 */
#ifndef CALIBRATE_REQUEST_H
#define CALIBRATE_REQUEST_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NUMBERS = 3, WORD_BYTES = 16 };

struct pair {
    int a, b;
};

struct request {
    char what[WORD_BYTES];
    double numbers[MOST_NUMBERS];
    struct pair* pairs;
    int pair_count;
};

struct kind {
    const char* what;
    int numbers;
};

static const struct kind kinds[] = {{"pingpong", 2}, {"quartiles", 2}, {"star", 2},   {"overhead", 3},
                                    {"burst", 3},    {"stream", 3},    {"memory", 2}, {"end", 0}};

/* Whether a rank is part of two pairs, or its own partner in an experiment that needs two ranks: both would deadlock.
 */
static bool is_entangled(const struct request* r, int ranks) {
    const bool star = !strcmp(r->what, "star"), alone = !strcmp(r->what, "memory");
    char* busy = calloc((size_t)ranks, 1);
    bool entangled = !busy;
    for (int i = 0; i < r->pair_count && !entangled; ++i) {
        const struct pair p = r->pairs[i];
        entangled = (p.a == p.b) != alone || busy[p.b] || (busy[p.a] && !(star && i > 0));
        busy[p.a] = busy[p.b] = 1;
    }
    free(busy);
    return entangled;
}

/* Parses a line in place. Returns what is wrong with it, or NULL. */
static const char* read_request(struct request* r, char* line, int ranks) {
    char *save, *word = strtok_r(line, " \n", &save);
    const struct kind* kind = NULL;
    for (size_t i = 0; word && i < sizeof kinds / sizeof kinds[0]; ++i)
        if (!strcmp(word, kinds[i].what)) kind = &kinds[i];
    if (!kind) return "no such experiment";
    snprintf(r->what, sizeof r->what, "%s", kind->what);
    for (int i = 0; i < kind->numbers; ++i) {
        char* end = NULL;
        word = strtok_r(NULL, " \n", &save);
        if (word) r->numbers[i] = strtod(word, &end);
        if (!word || *end || !(r->numbers[i] >= 0) || r->numbers[i] > 1e9) return "a number is missing or wrong";
    }
    r->pair_count = 0;
    int room = 0;
    const bool star = !strcmp(r->what, "star");
    while ((word = strtok_r(NULL, " \n", &save)) != NULL) {
        struct pair p;
        char rest;
        if (sscanf(word, "%d:%d%c", &p.a, &p.b, &rest) != 2) return "a pair is not A:B";
        if (p.a < 0 || p.b < 0 || p.a >= ranks || p.b >= ranks) return "no such rank in this job";
        if (star && r->pair_count && p.a != r->pairs[0].a) return "a star has one centre";
        if (r->pair_count == room) {
            room = room ? 2 * room : 16;
            r->pairs = realloc(r->pairs, (size_t)room * sizeof *r->pairs);
            if (!r->pairs) return "no memory for the pairs";
        }
        r->pairs[r->pair_count++] = p;
    }
    if (kind->numbers && !r->pair_count) return "no pair is given";
    return is_entangled(r, ranks) ? "a rank stands in two pairs" : NULL;
}

/* The pair that a rank is part of, or -1. */
static int pair_of(const struct request* r, int rank) {
    for (int i = 0; i < r->pair_count; ++i)
        if (r->pairs[i].a == rank || r->pairs[i].b == rank) return i;
    return -1;
}

#endif
