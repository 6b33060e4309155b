#include "palmette/device/resources.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

#include "palmette/device/place.hpp"

namespace palmette::device {
namespace {

constexpr std::int64_t least_block = 64 << 10;

std::int64_t block_bytes(std::int64_t bytes) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(bytes, least_block))));
}

}  // namespace

Resources& Resources::instance() {
    // Never destroyed: calls may come until the process ends.
    static Resources* all = new Resources;
    return *all;
}

HostBlock Resources::take(const Place& place, std::int64_t bytes, bool sparse) {
    const std::int64_t wanted = sparse ? bytes : block_bytes(bytes);
    if (!sparse) {
        const std::lock_guard lock(mutex_);
        const auto fits = std::find_if(free_.begin(), free_.end(), [&](const HostBlock& block) {
            return block.bytes == wanted && block.pinned_at.driver == place.driver;
        });
        if (fits != free_.end()) {
            const HostBlock block = *fits;
            free_.erase(fits);
            free_bytes_ -= block.bytes;
            return block;
        }
    }
    // Ordinary memory that is registered, not the driver's own: other processes of the node can read it by single copy.
    void* memory = mmap(nullptr, static_cast<std::size_t>(wanted), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | (sparse ? MAP_NORESERVE : 0), -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    HostBlock block{static_cast<char*>(memory), wanted, false, place};
    if (!sparse) {
        block.pinned = place.driver->pin(place, memory, wanted) == nullptr;
        if (block.pinned)
            counts_.pinned.fetch_add(wanted, std::memory_order_relaxed);
        else
            counts_.not_pinned.fetch_add(1, std::memory_order_relaxed);
    }
    return block;
}

void Resources::give_back(const HostBlock& block) {
    if (!block.data) return;
    {
        const std::lock_guard lock(mutex_);
        const bool reusable = block.bytes == block_bytes(block.bytes);
        if (reusable && free_bytes_ + block.bytes <= most_kept_bytes) {
            free_.push_back(block);
            free_bytes_ += block.bytes;
            return;
        }
    }
    unmap(block);
}

void Resources::unmap(const HostBlock& block) {
    if (block.pinned) {
        block.pinned_at.driver->unpin(block.pinned_at, block.data);
        counts_.pinned.fetch_sub(block.bytes, std::memory_order_relaxed);
    }
    host_pages.remove(block.data);
    munmap(block.data, static_cast<std::size_t>(block.bytes));
}

Status Resources::take(const Place& place, Lane& lane) {
    {
        const std::lock_guard lock(mutex_);
        const auto at =
            std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& idle) { return same_queue(idle.place, place); });
        if (at != lanes_.end()) {
            lane = std::move(*at);
            lanes_.erase(at);
            return nullptr;
        }
    }
    lane = Lane{place, nullptr, {}};
    return place.driver->open_queue(place, lane.queue);
}

Event Resources::event(Lane& lane, std::size_t index) {
    while (lane.events.size() <= index) {
        Event event = nullptr;
        if (lane.place.driver->open_event(lane.place, event)) return nullptr;
        lane.events.push_back(event);
    }
    return lane.events[index];
}

void Resources::give_back(Lane&& lane, bool broken) {
    if (!lane.queue) return;
    const std::lock_guard lock(mutex_);
    if (!broken) {
        lanes_.push_back(std::move(lane));
        return;
    }
    for (Event event : lane.events) lane.place.driver->close_event(lane.place, event);
    lane.place.driver->close_queue(lane.place, lane.queue);
}

void Resources::release() {
    const std::lock_guard lock(mutex_);
    for (const HostBlock& block : free_) unmap(block);
    free_.clear();
    free_bytes_ = 0;
    for (Lane& lane : lanes_) {
        for (Event event : lane.events) lane.place.driver->close_event(lane.place, event);
        lane.place.driver->close_queue(lane.place, lane.queue);
    }
    lanes_.clear();
    for (Driver* driver : all_drivers()) driver->release_kernels();
}

}  // namespace palmette::device
