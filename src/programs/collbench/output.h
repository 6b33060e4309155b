/* Output of rank 0: JSON lines. */
#ifndef COLLBENCH_OUTPUT_H
#define COLLBENCH_OUTPUT_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../json_text.h"
#include "../program.h"

enum { NAME_BYTES = 128 };

static void put_times(FILE* out, const char* name, const double* values, int count) {
    fprintf(out, ",\"%s\":[", name);
    for (int i = 0; i < count; ++i) fprintf(out, "%s%.9f", i ? "," : "", values[i]);
    fputc(']', out);
}

/* Whether a library of palmette's is mapped into this process. */
static bool palmette_is_loaded(void) {
    static const char* const names[] = {"/libpalmette_mpich.so", "/libpalmette_ompi.so", "/libpalmette_abi.so"};
    FILE* maps = fopen("/proc/self/maps", "r");
    char line[4096];
    bool found = false;
    while (maps && fgets(line, sizeof line, maps))
        for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) found = found || strstr(line, names[i]);
    if (maps) fclose(maps);
    return found;
}

/* Writes the job: MPI version, host of each rank, and the number of ranks with palmette loaded. Collective. */
static void put_job(FILE* out, const char* format, bool shared_clock, uint64_t seed) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "", name[MPI_MAX_PROCESSOR_NAME] = "", mine[NAME_BYTES] = "";
    int length, loaded = palmette_is_loaded(), loaded_on = 0;
    PMPI_Get_library_version(version, &length);
    PMPI_Get_processor_name(name, &length);
    memcpy(mine, name, (size_t)length < NAME_BYTES ? (size_t)length : NAME_BYTES - 1);
    char* hosts = allocate((size_t)ranks, NAME_BYTES);
    PMPI_Gather(mine, NAME_BYTES, MPI_CHAR, hosts, NAME_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
    PMPI_Reduce(&loaded, &loaded_on, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (out) {
        fprintf(out, "{\"event\":\"job\",\"format\":\"%s\",\"version\":1,\"ranks\":%d,\"clock\":\"%s\",\"seed\":%llu",
                format, ranks, shared_clock ? "shared" : "barrier", (unsigned long long)seed);
        fprintf(out, ",\"palmette_on_ranks\":%d,\"mpi\":", loaded_on);
        put_text(out, version);
        fprintf(out, ",\"hosts\":[");
        for (int r = 0; r < ranks; ++r) {
            if (r) fputc(',', out);
            put_text(out, hosts + (size_t)r * NAME_BYTES);
        }
        fprintf(out, "]}\n");
        fflush(out);
    }
    free(hosts);
}

static inline void put_end(FILE* out, bool wrong) {
    fprintf(out, "{\"event\":\"end\",\"wrong\":%s}\n", wrong ? "true" : "false");
    fflush(out);
}

#endif
