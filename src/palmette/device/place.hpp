// Where a buffer lies: of the host for good, or what the driver says now, which costs a microsecond.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "palmette/device/driver.hpp"
#include "palmette/device/loaded.hpp"

namespace palmette::device {

/// Memory that can't be a device's as long as the calling thread runs: the program's variables, what malloc has taken
/// by brk, and the thread's own stack.
///
/// Nothing else is remembered. Any other page may be unmapped and come to be a device's, and a page may have device
/// memory in one part and none in another: drivers give small allocations that are parts of pages, and take what
/// addresses the kernel gives.
class HostMemory {
  public:
    /// Looks where they are, once. Costs a read of /proc/self/maps.
    void learn();
    bool has(const void* address) const {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        if (at - data_.load(std::memory_order_relaxed) < data_bytes_.load(std::memory_order_relaxed)) return true;
        // Without a system call in glibc.
        if (const std::uintptr_t heap = heap_.load(std::memory_order_relaxed); at >= heap)
            if (at < reinterpret_cast<std::uintptr_t>(sbrk(0))) return true;
        return stack_has(at);
    }

  private:
    struct Stack {
        std::uintptr_t begin = 1, end = 0;  ///< begin > end: not learned
    };
    static bool stack_has(std::uintptr_t at) {
        const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        if (stack_.begin > stack_.end) [[unlikely]]
            learn_stack();
        // A coroutine runs on another one.
        return here >= stack_.begin && at >= here && at < stack_.end;
    }
    static void learn_stack();

    static constinit thread_local Stack stack_;
    std::atomic<std::uintptr_t> data_{0}, data_bytes_{0};
    std::atomic<std::uintptr_t> heap_{~std::uintptr_t{0}};
};
extern constinit HostMemory host_memory;

/// A driver has begun, so that there may be memory of a device's.
extern constinit std::atomic<bool> drivers_begun;
/// Looks for one. Costs some nanoseconds.
bool look_for_begun();

/// Whether addresses can't be a device's, or are null; false: ask `place_of`.
template <class... Addresses>
bool known_host(Addresses... addresses) {
    if (!drivers_begun.load(std::memory_order_relaxed) && !look_for_begun()) [[unlikely]]
        return true;
    const auto is_host = [](const void* address) {
        return reinterpret_cast<std::uintptr_t>(address) < 4096 || host_memory.has(address);
    };
    return (is_host(addresses) && ...);
}

/// Asks the drivers, unless the address is known to be the host's.
Place place_of(const void* address);

}  // namespace palmette::device
