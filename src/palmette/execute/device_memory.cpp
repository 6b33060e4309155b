#include "palmette/execute/device_memory.hpp"

#include <algorithm>
#include <utility>

namespace palmette::runtime {

constinit DeviceMemory::Counts DeviceMemory::counts;

device::Status DeviceMemory::open(Memory& host, const device::Place& place, std::int64_t by_handle_from,
                                  bool combines) {
    close();
    host_ = &host;
    place_ = place;
    by_handle_from_ = by_handle_from;
    KnownOperation known{};
    if (combines && !has_kernel(0, known)) take_bounce(6 * piece_bytes);
    const device::Status status = device::Resources::instance().take(place, lane_);
    if (status) {
        lane_ = device::Lane();
        close();
    }
    return status;
}

device::Status DeviceMemory::close() {
    if (lane_.queue) {
        settle();
        device::Resources::instance().give_back(std::move(lane_), failure_ != nullptr);
        lane_ = device::Lane();
    }
    device::Resources::instance().give_back(bounce_);
    bounce_ = device::HostBlock();
    device::Resources::instance().give_back(scratch_);
    scratch_ = device::DeviceBlock();
    for (const Reached& one : reached_) device::Imports::instance().give_back(one.mapping);
    reached_.clear();
    ranges_.clear();
    no_kernels_ = busy_ = false;
    return std::exchange(failure_, nullptr);
}

char* DeviceMemory::scratch(std::int64_t bytes) {
    if (bytes <= 0) return nullptr;
    scratch_ = device::Resources::instance().take_device(place_, bytes);
    if (scratch_.data) add(scratch_.data, bytes);
    return scratch_.data;
}

void DeviceMemory::take_bounce(std::int64_t bytes) {
    device::Resources::instance().give_back(bounce_);
    bounce_ = device::HostBlock();
    bounce_ = device::Resources::instance().take(place_, bytes);
    device::Resources::instance().pin(bounce_);
}

bool DeviceMemory::has_kernel(std::uint8_t operation, KnownOperation& found) const {
    const auto known = host_->known(operation);
    if (no_kernels_ || !known || !place_.driver->has_kernel(known->op, known->element)) return false;
    found = *known;
    return true;
}

void DeviceMemory::settle() {
    if (!busy_) return;
    busy_ = false;
    note(place_.driver->synchronize(place_, lane_.queue));
}

void DeviceMemory::begin_copy(char* to, const char* from, std::int64_t bytes) {
    busy_ = true;
    note(place_.driver->copy(place_, lane_.queue, to, from, bytes));
}

void DeviceMemory::copy(char* to, const char* from, std::int64_t bytes) {
    if (to == from || bytes <= 0) return;
    if (holds(to) || holds(from)) return begin_copy(to, from, bytes);
    // The host's bytes may be those that a copy outstanding reads or writes.
    settle();
    host_->copy(to, from, bytes);
}

bool DeviceMemory::combine_on_device(std::uint8_t operation, const char* left, const char* right, char* target,
                                     std::int64_t bytes) {
    KnownOperation known{};
    if (!has_kernel(operation, known)) return false;
    if (!holds(left) || !holds(right) || !holds(target)) return false;
    // Devices read no element that isn't aligned.
    const auto size = static_cast<std::int64_t>(bytes_of(known.element).size);
    for (const char* operand : {left, right, static_cast<const char*>(target)})
        if (reinterpret_cast<std::uintptr_t>(operand) % static_cast<std::uintptr_t>(size) != 0) return false;
    if (place_.driver->combine(place_, lane_.queue, known.op, known.element, left, right, target, bytes / size)) {
        no_kernels_ = true;
        return false;
    }
    busy_ = true;
    return true;
}

int DeviceMemory::combine_on_host(std::uint8_t operation, const char* left, const char* right, char* target,
                                  std::int64_t bytes) {
    const std::int64_t element = std::max<std::int64_t>(1, host_->element_bytes(operation));
    const std::int64_t most = std::max<std::int64_t>(1, piece_bytes / element) * element;
    if (bounce_.bytes < 6 * most) {
        settle();
        take_bounce(6 * most);
    }
    const bool writes = holds(target);
    int set = 0;
    for (std::int64_t at = 0; at < bytes; at += most, set ^= 1) {
        const std::int64_t part = std::min(most, bytes - at);
        char* const room = bounce_.data + set * 3 * most;
        const auto on_host = [&](const char* operand, char* copy) {
            if (!holds(operand)) return operand + at;
            begin_copy(copy, operand + at, part);
            return static_cast<const char*>(copy);
        };
        const char* const a = on_host(left, room);
        const char* const b = right == left ? a : on_host(right, room + most);
        // Also for what is written back from the other set, which the next part uses.
        settle();
        char* const result = writes ? room + 2 * most : target + at;
        if (const int error = host_->combine(operation, a, b, result, part); error != 0) return error;
        if (writes) begin_copy(target + at, result, part);
    }
    // The set that is written back last must not be used before.
    settle();
    return 0;
}

int DeviceMemory::combine(std::uint8_t operation, const char* left, const char* right, char* target,
                          std::int64_t bytes) {
    if (bytes <= 0) return 0;
    if (!holds(left) && !holds(right) && !holds(target)) {
        settle();
        return host_->combine(operation, left, right, target, bytes);
    }
    if (combine_on_device(operation, left, right, target, bytes)) {
        counts.on_device.fetch_add(1, std::memory_order_relaxed);
        return 0;
    }
    counts.on_host.fetch_add(1, std::memory_order_relaxed);
    return combine_on_host(operation, left, right, target, bytes);
}

bool DeviceMemory::find_export(const char* address, std::int64_t bytes, device::Exported& out) const {
    return device::Exports::instance().find(place_, address, out) && out.offset + bytes <= out.allocation;
}

const char* DeviceMemory::reach(const device::Exported& exported, std::uint64_t address, std::int64_t bytes) {
    if (exported.process == device::this_process()) {
        // Of a neighbour in this process, or this one's own.
        const char* const own = reinterpret_cast<const char*>(address);
        if (!holds(own)) add(own, bytes);
        return own;
    }
    for (const Reached& one : reached_)
        if (one.exported.process == exported.process && one.exported.begin == exported.begin &&
            one.exported.id == exported.id) {
            device::ipc_counts.hits.fetch_add(1, std::memory_order_relaxed);
            return one.mapping.begin + exported.offset;
        }
    const device::Imports::Mapping mapping = device::Imports::instance().take(place_, exported);
    if (!mapping.begin) return nullptr;
    reached_.push_back({exported, mapping});
    add(mapping.begin, mapping.bytes);
    return mapping.begin + exported.offset;
}

}  // namespace palmette::runtime
