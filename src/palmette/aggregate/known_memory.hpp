// Memory whose owner says when it goes: palmette's own, and that of MPI_Alloc_mem until MPI_Free_mem.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "palmette/aggregate/registration_cache.hpp"

namespace palmette::aggregate {

/// The process's memory that caches may register. Tells the caches, and may be used by several threads.
class KnownMemory {
  public:
    static KnownMemory& instance();

    void added(void* memory, std::size_t bytes);
    /// Tells caches that memory will be unmapped. Nothing happens for memory that wasn't added.
    void removed(void* memory) noexcept;

    /// The cache may register all of it from now on, until `leave`.
    void join(RegistrationCache& cache);
    void leave(RegistrationCache& cache) noexcept;

  private:
    std::mutex mutex_;
    std::map<void*, std::size_t> bytes_of_;
    std::vector<RegistrationCache*> caches_;
};

}  // namespace palmette::aggregate
