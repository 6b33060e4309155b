/* Shared by all benchmark programs: rank and size, abort with a message, and checked allocation. A program defines
 * PROGRAM, its name, before it includes this. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int my_rank, ranks;

static void stop(const char* form, ...) {
    va_list list;
    va_start(list, form);
    fprintf(stderr, PROGRAM ": rank %d: ", my_rank);
    vfprintf(stderr, form, list);
    fputc('\n', stderr);
    va_end(list);
    PMPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static void* allocate(size_t count, size_t bytes) {
    void* memory = calloc(count ? count : 1, bytes);
    if (!memory) stop("no memory for %zu bytes; take smaller sizes or fewer ranks", count * bytes);
    return memory;
}

#endif
