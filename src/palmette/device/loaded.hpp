// Detects when the driver library of a GPU comes into the process: only from then on can buffers lie in device memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace palmette::device {

/// What the check of each call reads: one line of ours and one word of the dynamic loader's.
struct alignas(64) DriverWatch {
    /// The loader's count of libraries that it has ever loaded, where that was found; else a word that never matches.
    std::atomic<const std::uint64_t*> loads;
    std::atomic<std::uint64_t> seen;  ///< its value at the last look, stored after what that has found
    std::atomic<bool> found;
};
extern constinit DriverWatch driver_watch;

/// Looks through the libraries that have come since the last look. Takes the loader's lock.
bool look_for_drivers();

/// Whether CUDA's or HIP's driver library has been loaded into this process, however it came: linked, by a dlopen of
/// the program's, or as a dependency of a plugin. It counts as loaded for good, since it isn't unloaded any more (see
/// find_drivers). Costs two loads: no lock and no system call as long as no library was loaded since the last call.
inline bool driver_loaded() {
    if (driver_watch.found.load(std::memory_order_relaxed)) return true;
    const std::uint64_t* loads = driver_watch.loads.load(std::memory_order_relaxed);
    // `found` once more: another thread's look may have ended since.
    if (__atomic_load_n(loads, __ATOMIC_RELAXED) == driver_watch.seen.load(std::memory_order_acquire)) [[likely]]
        return driver_watch.found.load(std::memory_order_relaxed);
    return look_for_drivers();
}

/// From now on none counts as loaded: no buffer is looked at.
void ignore_drivers();

/// Whether a library was loaded since the last look.
inline bool libraries_came() {
    return __atomic_load_n(driver_watch.loads.load(std::memory_order_relaxed), __ATOMIC_RELAXED) !=
           driver_watch.seen.load(std::memory_order_relaxed);
}

/// Where the loader's count is, as it was learned; null: not found, so that each check takes the loader's lock (40 ns).
const void* learned_count();

}  // namespace palmette::device
