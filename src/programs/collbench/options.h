/* The command line of collbench. */
#ifndef COLLBENCH_OPTIONS_H
#define COLLBENCH_OPTIONS_H

#include <limits.h>

#include "collectives.h"
#include "device_memory.h"
#include "measuring.h"

enum { MOST_SIZES = 64, MOST_CELLS = 4096 };

struct cell {
    const struct collective* collective;
    size_t size;
};

struct options {
    const struct collective* chosen[COLLECTIVES];
    int chosen_count;
    size_t sizes[MOST_SIZES];
    int size_count;
    struct cell* cells; /* --cells, instead of all collectives in all sizes */
    int cell_count;
    struct measuring how;
    double limit_s; /* time limit of a cell, even with too few pairs; 0: none */
    int min_pairs, max_pairs, root;
    bool pass_through;
    enum memory memory;
    bool copies; /* the MPI alone gets copies in host memory */
};

static const char usage[] =
    "Usage: collbench [OPTION]...   under mpiexec\n"
    "Times collectives called as PMPI_X (the MPI alone) and as MPI_X (what is preloaded), interleaved in one job.\n"
    "  --collectives A,B,...   default gather,scatter,allgather; --list names all\n"
    "  --sizes N,N,...         bytes a block, or of the vector; default 64,1024,16384,65536,262144; none for a "
    "barrier\n"
    "  --cells A:N,B:N,...     these collectives and sizes only, instead of both lists\n"
    "  --seconds S             time a cell, 2\n"
    "  --limit S               after this time a cell ends with 3 pairs, too; 0, the default: never\n"
    "  --min-iterations N      pairs of calls that start in time, per cell, 8; stops after 4 N pairs\n"
    "  --max-iterations N      pairs a cell at most, 1000\n"
    "  --warmup N              warm-up pairs of calls, 6: some MPIs switch algorithms after 5\n"
    "  --root R                default 0\n"
    "  --memory KIND           where buffers lie: host; cuda, a GPU's memory; pool or mapped, the same from a "
    "stream's\n"
    "                          pool or a mapping; managed; pinned, the host's; default host\n"
    "  --copies                with --memory: the MPI alone gets copies in host memory, which its time includes\n"
    "  --clock shared|barrier  shared: all ranks read one CLOCK_MONOTONIC and start at an agreed time;\n"
    "                          barrier: each rank times itself after a barrier, which hides part of the time\n"
    "  --wait sleep|spin       for the start: spin only with a core for each rank; default sleep\n"
    "  --window-us U           lead time from the agreement on a common start to that start, at least; 2000\n"
    "  --seed N                of the order within the pairs, 1\n"
    "  --pass-through          instead: loops of calls as PMPI_X and as MPI_X, a pair for each of --max-iterations\n"
    "  --output FILE           JSON lines, written by rank 0; default standard output\n";

static const char* parse_collectives(void* target, char* list, const char** at) {
    struct options* o = target;
    o->chosen_count = 0;
    for (char *save, *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        *at = word;
        const struct collective* c = find_collective(word);
        if (!c) return "unknown collective; --list names those that there are";
        for (int i = 0; i < o->chosen_count; ++i)
            if (o->chosen[i] == c) return "a collective is named twice";
        o->chosen[o->chosen_count++] = c;
    }
    return o->chosen_count ? NULL : "no collective is named";
}

static const char* parse_sizes(void* target, char* list, const char** at) {
    struct options* o = target;
    o->size_count = 0;
    for (char *save, *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        *at = word;
        double value;
        if (!parse_whole(word, 1, INT_MAX / 2, &value)) return "a size is a whole number of bytes, 1 to 1073741823";
        if (o->size_count == MOST_SIZES) return "more than 64 sizes";
        o->sizes[o->size_count++] = (size_t)value;
    }
    return o->size_count ? NULL : "no size is given";
}

static const char* parse_cells(void* target, char* list, const char** at) {
    struct options* o = target;
    free(o->cells);
    o->cells = malloc(MOST_CELLS * sizeof *o->cells);
    if (!o->cells) return "no memory for a list of cells";
    o->cell_count = 0;
    for (char *save, *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        *at = word;
        char* colon = strchr(word, ':');
        double size;
        if (!colon || !parse_whole(colon + 1, 0, INT_MAX / 2, &size)) return "a cell is COLLECTIVE:BYTES";
        *colon = 0;
        const struct collective* c = find_collective(word);
        if (!c) return "unknown collective; --list names those that there are";
        if ((size == 0) == has_data(c)) return "a barrier has size 0, everything else has a size";
        if (o->cell_count == MOST_CELLS) return "more than 4096 cells";
        o->cells[o->cell_count++] = (struct cell){c, (size_t)size};
    }
    return o->cell_count ? NULL : "no cell is named";
}

static const char* parse_memory(void* target, char* value, const char** at) {
    (void)at;
    for (int i = HOST; i < MEMORIES; ++i)
        if (strcmp(value, memory_names[i]) == 0) return *(enum memory*)target = (enum memory)i, NULL;
    return "--memory takes host, cuda, managed, pinned, pool or mapped";
}

/* Set `o` from the command line. Returns NULL, or what is wrong with the option in *at. Does no output. */
static const char* parse_options(struct options* o, int argc, char** argv, bool* list, const char** at) {
    *o = (struct options){.chosen = {&collectives[0], &collectives[1], &collectives[2]},
                          .chosen_count = 3,
                          .sizes = {64, 1024, 16384, 65536, 262144},
                          .size_count = 5,
                          .how = {.seconds = 2, .warmup = 6, .window_s = 2e-3, .seed = 1, .shared_clock = true},
                          .min_pairs = 8,
                          .max_pairs = 1000};
    const struct option_row rows[] = {{"collectives", PARSED, o, 0, parse_collectives},
                                      {"sizes", PARSED, o, 0, parse_sizes},
                                      {"cells", PARSED, o, 0, parse_cells},
                                      {"limit", NUMBER, &o->limit_s, 0, NULL},
                                      {"min-iterations", COUNT, &o->min_pairs, 1, NULL},
                                      {"max-iterations", COUNT, &o->max_pairs, 1, NULL},
                                      {"root", COUNT, &o->root, 0, NULL},
                                      {"memory", PARSED, &o->memory, 0, parse_memory},
                                      {"copies", FLAG, &o->copies, 0, NULL},
                                      {"pass-through", FLAG, &o->pass_through, 0, NULL},
                                      {"list", FLAG, list, 0, NULL}};
    const char* wrong = parse_command_line(rows, sizeof rows / sizeof *rows, &o->how, argc, argv, at);
    if (!wrong && o->min_pairs > o->max_pairs) *at = "--min-iterations", wrong = "more than --max-iterations";
    return wrong;
}

#endif
