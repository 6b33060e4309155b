// Memory that the MPI allocates: it is known when it goes, so that it can be registered with a device and kept so.
#include <cstddef>

#include "palmette/aggregate/known_memory.hpp"
#include "palmette/interpose/wrappers.hpp"

namespace palmette::interpose {

using aggregate::KnownMemory;

int on_MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
    const int code = next::MPI_Alloc_mem(size, info, baseptr);
    if (code != MPI_SUCCESS || size <= 0) return code;
    try {
        KnownMemory::instance().added(*static_cast<void**>(baseptr), static_cast<std::size_t>(size));
    } catch (...) {
        // Not known: it isn't registered.
    }
    return code;
}

int on_MPI_Free_mem(void* base) {
    KnownMemory::instance().removed(base);
    return next::MPI_Free_mem(base);
}

}  // namespace palmette::interpose
