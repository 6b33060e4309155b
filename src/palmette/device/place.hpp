// Where a buffer lies, with host pages remembered: asking the driver costs a microsecond.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "palmette/device/driver.hpp"
#include "palmette/device/loaded.hpp"

namespace palmette::device {

/// Pages that no driver knows: by page number, the last one of each slot.
///
/// A page may be unmapped and become a device's later. Drivers reserve the address space of a device's memory when its
/// context is made, before any buffer of it can be passed on: all is forgotten when the first context is seen, and
/// whenever a buffer turns up in an allocation not seen before.
class HostPages {
  public:
    bool has(const void* address) const {
        const std::uint64_t page = page_of(address);
        return page == 0 || slot(page).load(std::memory_order_relaxed) == page;
    }
    void add(const void* address) {
        const std::uint64_t page = page_of(address);
        slot(page).store(page, std::memory_order_relaxed);
    }
    void remove(const void* address) {
        std::uint64_t page = page_of(address);
        slot(page).compare_exchange_strong(page, 0, std::memory_order_relaxed);
    }
    void clear() {
        for (auto& slot : slots_) slot.store(0, std::memory_order_relaxed);
    }

  private:
    static constexpr int slot_bits = 10;
    /// Large buffers tend to begin at multiples of large powers of two.
    const std::atomic<std::uint64_t>& slot(std::uint64_t page) const {
        return slots_[page * 0x9e3779b97f4a7c15U >> (64 - slot_bits)];
    }
    std::atomic<std::uint64_t>& slot(std::uint64_t page) {
        return slots_[page * 0x9e3779b97f4a7c15U >> (64 - slot_bits)];
    }
    static std::uint64_t page_of(const void* address) { return reinterpret_cast<std::uint64_t>(address) >> 12; }
    std::array<std::atomic<std::uint64_t>, 1 << slot_bits> slots_{};
};
extern constinit HostPages host_pages;
/// A thread had a context when a buffer was looked at.
extern constinit std::atomic<bool> context_seen;
/// Looks for one; forgets all pages when it is the first. Costs some nanoseconds.
bool look_for_context();

/// Whether addresses lie in the host's memory as far as is remembered; false: ask `place_of`.
template <class... Addresses>
bool known_host(Addresses... addresses) {
    if (!context_seen.load(std::memory_order_relaxed)) [[unlikely]]
        look_for_context();
    return (host_pages.has(addresses) && ...);
}

/// Asks the drivers, at most once for each page of the host's.
Place place_of(const void* address);

}  // namespace palmette::device
