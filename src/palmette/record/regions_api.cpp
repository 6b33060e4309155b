// What programs call for their regions: see palmette.h. Without a recording they cost a branch.
#include <mpi.h>

#include <cstdlib>
#include <new>

#include "palmette/interpose/palmette.h"
#include "palmette/record/node_file.hpp"
#include "palmette/record/regions.hpp"

using palmette::record::Regions;

#define PALMETTE_REGION_API extern "C" __attribute__((visibility("default")))

PALMETTE_REGION_API int palmette_region_begin(const char* name) {
    Regions* const all = palmette::record::regions.load(std::memory_order_acquire);
    return !all || all->begin(name) ? MPI_SUCCESS : MPI_ERR_ARG;
}

PALMETTE_REGION_API int palmette_region_end(const char* name) {
    Regions* const all = palmette::record::regions.load(std::memory_order_acquire);
    return !all || all->end(name) ? MPI_SUCCESS : MPI_ERR_ARG;
}

#if !defined(PALMETTE_ABI_SMPI)

PALMETTE_REGION_API void __cyg_profile_func_enter(void* function, void* called_from);
PALMETTE_REGION_API void __cyg_profile_func_exit(void* function, void* called_from);

/// Called by functions that were compiled with -finstrument-functions. The C library has empty ones.
PALMETTE_REGION_API void __cyg_profile_func_enter(void* function, void* /*called_from*/) {
    if (Regions* const all = palmette::record::regions.load(std::memory_order_acquire)) all->enter(function);
}
PALMETTE_REGION_API void __cyg_profile_func_exit(void* function, void* /*called_from*/) {
    if (Regions* const all = palmette::record::regions.load(std::memory_order_acquire)) all->leave(function);
}

namespace palmette::record {
namespace {

/// Before the program's own constructors, whose functions may be instrumented.
__attribute__((constructor)) void count_regions() {
    if (setting("PALMETTE_TRACE").empty() && setting("PALMETTE_PROFILE").empty()) return;
    try {
        regions.store(new Regions, std::memory_order_release);
    } catch (const std::bad_alloc&) {
        return;
    }
    // A child has none of the section's memory.
    pthread_atfork(nullptr, nullptr, [] { regions.store(nullptr, std::memory_order_release); });
}

}  // namespace
}  // namespace palmette::record

#endif
