#include "palmette/aggregate/known_memory.hpp"

#include <utility>

#include "palmette/base/never_destroyed.hpp"

namespace palmette::aggregate {

KnownMemory& KnownMemory::instance() {
    static base::NeverDestroyed<KnownMemory> known(std::in_place);
    return *known;
}

void KnownMemory::added(void* memory, std::size_t bytes) {
    if (!memory || bytes == 0) return;
    const std::lock_guard guard(mutex_);
    bytes_of_[memory] = bytes;
    for (RegistrationCache* const cache : caches_) {
        // Nobody may have said that what was there before has gone: Fortran's way of freeing isn't seen in each MPI.
        cache->withdraw(memory, bytes);
        cache->allow(memory, bytes);
    }
}

void KnownMemory::removed(void* memory) noexcept {
    const std::lock_guard guard(mutex_);
    const auto found = bytes_of_.find(memory);
    if (found == bytes_of_.end()) return;
    for (RegistrationCache* const cache : caches_) cache->withdraw(memory, found->second);
    bytes_of_.erase(found);
}

void KnownMemory::join(RegistrationCache& cache) {
    const std::lock_guard guard(mutex_);
    for (const auto& [memory, bytes] : bytes_of_) cache.allow(memory, bytes);
    caches_.push_back(&cache);
}

void KnownMemory::leave(RegistrationCache& cache) noexcept {
    const std::lock_guard guard(mutex_);
    std::erase(caches_, &cache);
}

}  // namespace palmette::aggregate
