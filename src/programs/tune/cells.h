/* The cells to measure: one per line of a file that rank 0 reads and broadcasts. */
#ifndef TUNE_CELLS_H
#define TUNE_CELLS_H

#include <errno.h>

#include "../collbench/cell.h"

enum { MOST_CANDIDATES = 200 };

struct cell {
    const struct collective* collective;
    size_t size;
    int root, line, count;
    char* candidates[MOST_CANDIDATES];
};

/* Reads a file on rank 0 and broadcasts its text. Collective. */
static char* read_everywhere(const char* path) {
    long length = 0;
    char* text = NULL;
    if (my_rank == 0) {
        FILE* in = fopen(path, "rb");
        if (!in) stop("%s: can't be read (%s); correct --cells", path, strerror(errno));
        if (fseek(in, 0, SEEK_END) != 0 || (length = ftell(in)) < 0 || length > INT_MAX - 1)
            stop("%s: not a file of a size that can be read; correct --cells", path);
        rewind(in);
        text = allocate((size_t)length + 1, 1);
        if (fread(text, 1, (size_t)length, in) != (size_t)length) stop("%s: can't be read to its end", path);
        fclose(in);
    }
    PMPI_Bcast(&length, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    if (!text) text = allocate((size_t)length + 1, 1);
    PMPI_Bcast(text, (int)length, MPI_CHAR, 0, MPI_COMM_WORLD);
    return text;
}

static const char* read_words(struct cell* cell, char* line) {
    char *save, *name = strtok_r(line, " \t\r", &save), *size = strtok_r(NULL, " \t\r", &save),
                *root = strtok_r(NULL, " \t\r", &save), *end = NULL;
    if (!root) return "expected COLLECTIVE BYTES ROOT CANDIDATE...";
    cell->collective = find_collective(name);
    if (!cell->collective || cell->collective->start[ALONE]) return "no blocking collective that tune knows";
    const long long bytes = strtoll(size, &end, 10);
    if (*end || bytes < 0 || bytes > INT_MAX / 2) return "the size is no number of bytes from 0 to 1073741823";
    cell->size = has_data(cell->collective) ? (size_t)bytes : 0;
    if (cell->collective->effect != MOVE && cell->size % sizeof(unsigned))
        return "the collective adds numbers of 4 bytes; its size must be a multiple of 4";
    const long rank = strtol(root, &end, 10);
    if (*end || rank < 0 || rank >= ranks) return "the root is no rank of this job";
    cell->root = (int)rank;
    for (char* word; (word = strtok_r(NULL, " \t\r", &save));) {
        if (cell->count == MOST_CANDIDATES) return "more than 200 candidates";
        cell->candidates[cell->count++] = word;
    }
    return cell->count ? NULL : "no candidate";
}

/* Parses the text into cells, which point into it. All ranks get the same result. */
static struct cell* read_cells(const char* path, char* text, int* count) {
    int lines = 1;
    for (const char* c = text; *c; ++c) lines += *c == '\n';
    struct cell* cells = allocate((size_t)lines, sizeof *cells);
    *count = 0;
    int number = 1;
    for (char *line = text, *next; line; line = next, ++number) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        if (line[strspn(line, " \t\r")] == 0) continue;
        cells[*count].line = number;
        const char* wrong = read_words(&cells[*count], line);
        if (wrong && my_rank == 0) stop("%s, line %d: %s", path, number, wrong);
        if (wrong) PMPI_Barrier(MPI_COMM_WORLD); /* rank 0 ends the job */
        ++*count;
    }
    return cells;
}

#endif
