#include "palmette/device/resources.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

#include "palmette/device/ipc.hpp"
#include "palmette/device/place.hpp"

namespace palmette::device {
namespace {

constexpr std::int64_t least_block = 64 << 10;

std::int64_t block_bytes(std::int64_t bytes) {
    // Powers of two, and from 1 MiB on eight steps between them.
    const auto wanted = static_cast<std::uint64_t>(std::max(bytes, least_block));
    const std::uint64_t power = std::bit_ceil(wanted);
    const std::uint64_t step = power > (1U << 20) ? power / 16 : power;
    return static_cast<std::int64_t>((wanted + step - 1) / step * step);
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
    if (memory == MAP_FAILED) {
        if (!unmap_free()) throw std::bad_alloc();
        return take(place, bytes, sparse);
    }
    return {static_cast<char*>(memory), wanted, false, place, !sparse, !sparse};
}

void Resources::pin(HostBlock& block) {
    if (!block.may_pin) return;
    block.may_pin = false;
    block.pinned = block.pinned_at.driver->pin(block.pinned_at, block.data, block.bytes) == nullptr;
    if (block.pinned)
        counts_.pinned.fetch_add(block.bytes, std::memory_order_relaxed);
    else
        counts_.not_pinned.fetch_add(1, std::memory_order_relaxed);
}

DeviceBlock Resources::take_device(const Place& place, std::int64_t bytes) {
    const std::int64_t wanted = block_bytes(bytes);
    {
        const std::lock_guard lock(mutex_);
        const auto fits = std::find_if(free_on_device_.begin(), free_on_device_.end(), [&](const DeviceBlock& block) {
            return block.bytes == wanted && same_queue(block.place, place);
        });
        if (fits != free_on_device_.end()) {
            const DeviceBlock block = *fits;
            free_on_device_.erase(fits);
            free_on_device_bytes_ -= block.bytes;
            return block;
        }
    }
    void* memory = nullptr;
    Place own = place;
    if (place.driver->allocate(place, wanted, memory))
        memory = nullptr;
    else
        own.id = place.driver->place_of(memory).id;
    return {static_cast<char*>(memory), wanted, own};
}

void Resources::give_back(const DeviceBlock& block) {
    if (!block.data) return;
    {
        const std::lock_guard lock(mutex_);
        if (free_on_device_bytes_ + block.bytes <= most_kept_on_device) {
            free_on_device_.push_back(block);
            free_on_device_bytes_ += block.bytes;
            return;
        }
    }
    block.place.driver->release(block.place, block.data);
}

void Resources::give_back(const HostBlock& block) {
    if (!block.data) return;
    {
        const std::lock_guard lock(mutex_);
        if (block.reusable && block.bytes <= most_kept_bytes) {
            // Those of sizes that aren't asked for any more make room.
            while (free_bytes_ + block.bytes > most_kept_bytes) {
                free_bytes_ -= free_.front().bytes;
                unmap(free_.front());
                free_.erase(free_.begin());
            }
            free_.push_back(block);
            free_bytes_ += block.bytes;
            return;
        }
    }
    unmap(block);
}

bool Resources::unmap_free() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return false;
    for (const HostBlock& block : free_) unmap(block);
    free_.clear();
    free_bytes_ = 0;
    return true;
}

void Resources::unmap(const HostBlock& block) {
    if (block.pinned) {
        block.pinned_at.driver->unpin(block.pinned_at, block.data);
        counts_.pinned.fetch_sub(block.bytes, std::memory_order_relaxed);
    }
    munmap(block.data, static_cast<std::size_t>(block.bytes));
}

Status Resources::take(const Place& place, Lane& lane) {
    {
        const std::lock_guard lock(mutex_);
        // What a context had ends with it.
        std::erase_if(lanes_, [](const Lane& idle) { return !idle.place.driver->is_alive(idle.place); });
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
    close(lane);
}

void Resources::close(const Lane& lane) {
    if (!lane.place.driver->is_alive(lane.place)) return;
    for (Event event : lane.events) lane.place.driver->close_event(lane.place, event);
    lane.place.driver->close_queue(lane.place, lane.queue);
}

void Resources::release() {
    Imports::instance().close_all();
    const std::lock_guard lock(mutex_);
    for (const HostBlock& block : free_) unmap(block);
    free_.clear();
    free_bytes_ = 0;
    for (const DeviceBlock& block : free_on_device_)
        if (block.place.driver->is_alive(block.place)) block.place.driver->release(block.place, block.data);
    free_on_device_.clear();
    free_on_device_bytes_ = 0;
    for (const Lane& lane : lanes_) close(lane);
    lanes_.clear();
    for (Driver* driver : all_drivers()) driver->release_kernels();
}

}  // namespace palmette::device
