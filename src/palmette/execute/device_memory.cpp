#include "palmette/execute/device_memory.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace palmette::execute {
namespace {

/// Parts of the bounce buffers: of three operands, while the next ones are on their way.
constexpr std::int64_t parts = 6;

bool overlap(const char* a, const char* b, std::int64_t bytes) { return a < b + bytes && b < a + bytes; }

}  // namespace

device::Status DeviceMemory::way_for(const device::Place& place, bool reads, std::size_t& index) {
    for (index = 0; index < ways_.size(); ++index)
        if (ways_[index].reads == reads && same_queue(ways_[index].lane.place, place)) return nullptr;
    if (ways_.size() == most_ways) return "too many devices";
    Way way;
    way.reads = reads;
    if (const device::Status status = device::Resources::instance().take(place, way.lane)) return status;
    ways_.push_back(std::move(way));
    return nullptr;
}

device::Status DeviceMemory::add(const void* begin, std::int64_t bytes, const device::Place& place) {
    Region region{static_cast<const char*>(begin), static_cast<const char*>(begin) + bytes, 0, 0, place};
    if (const device::Status status = way_for(place, true, region.read)) return status;
    if (const device::Status status = way_for(place, false, region.write)) return status;
    regions_.push_back(region);
    return nullptr;
}

void DeviceMemory::prepare_reductions(std::int64_t element_bytes) {
    const std::int64_t part = (std::max(part_bytes, element_bytes) + 63) / 64 * 64;
    if (part <= part_ || !any()) return;
    device::Resources::instance().give_back(std::exchange(bounce_, {}));
    bounce_ = device::Resources::instance().take(place(), parts * part);
    device::Resources::instance().pin(bounce_);
    part_ = part;
}

char* DeviceMemory::scratch(std::int64_t bytes) {
    if (bytes <= 0) return nullptr;
    scratch_ = device::Resources::instance().take_device(place(), bytes);
    if (!scratch_.data || add(scratch_.data, bytes, scratch_.place)) return nullptr;
    return scratch_.data;
}

device::Status DeviceMemory::close() {
    for (Way& way : ways_) {
        if (way.begun || way.done < way.recorded) synchronize(way);
        device::Resources::instance().give_back(std::move(way.lane), failure_ != nullptr);
    }
    let_go();
    device::Resources::instance().give_back(std::exchange(bounce_, {}));
    device::Resources::instance().give_back(std::exchange(scratch_, {}));
    part_ = 0;
    ways_.clear();
    regions_.clear();
    has_begun_ = no_kernels_ = false;
    return take_failure();
}

void DeviceMemory::begin(std::size_t index, void* to, const void* from, std::int64_t bytes) {
    Way& way = ways_[index];
    note(driver_of(way).copy(way.lane.place, way.lane.queue, to, from, bytes));
    way.begun = has_begun_ = true;
    (way.reads ? counts_.bytes_read : counts_.bytes_written) += bytes;
}

void DeviceMemory::synchronize(Way& way) {
    note(driver_of(way).synchronize(way.lane.place, way.lane.queue));
    way.begun = false;
    way.done = way.recorded;
}

std::uint64_t DeviceMemory::mark() {
    has_begun_ = false;
    std::size_t last = ways_.size();
    for (std::size_t i = 0; i < ways_.size(); ++i) {
        if (!ways_[i].begun) continue;
        // Steps that use several ways are rare: those before the last one are waited for.
        if (last < ways_.size()) synchronize(ways_[last]);
        last = i;
    }
    if (last == ways_.size()) return 0;
    Way& way = ways_[last];
    way.begun = false;
    // Events are used again once they are done.
    if (way.recorded - way.done == most_marks) await((way.done + 1) * most_ways + last);
    const std::uint64_t number = ++way.recorded;
    device::Event event = device::Resources::event(way.lane, number % most_marks);
    const device::Status status = event ? driver_of(way).record(way.lane.place, event, way.lane.queue) : "no event";
    if (status) {
        note(status);
        synchronize(way);
    }
    return number * most_ways + last;
}

void DeviceMemory::look() {
    for (Way& way : ways_) {
        for (bool done = true; done && way.done < way.recorded;) {
            note(driver_of(way).query(way.lane.place, way.lane.events[(way.done + 1) % most_marks], done));
            if (done) ++way.done;
        }
    }
}

void DeviceMemory::await(std::uint64_t mark) {
    if (is_done(mark)) return;
    Way& way = ways_[mark % most_ways];
    const std::uint64_t number = mark / most_ways;
    note(driver_of(way).wait(way.lane.place, way.lane.events[number % most_marks]));
    way.done = number;
}

void DeviceMemory::copy(char* to, const char* from, std::int64_t bytes) {
    if (to == from || bytes <= 0) return;
    const Region* const target = find(to);
    const Region* const source = find(from);
    if (!target && !source) {
        std::memmove(to, from, static_cast<std::size_t>(bytes));
    } else if (target && source &&
               (&driver_of(ways_[target->read]) != &driver_of(ways_[source->read]) || overlap(to, from, bytes))) {
        copy_by_host(to, *target, from, *source, bytes);
    } else {
        begin(target ? target->write : source->read, to, from, bytes);
    }
}

/// What one command can't do: bytes that overlap, or lie on devices of two drivers.
void DeviceMemory::copy_by_host(char* to, const Region& target, const char* from, const Region& source,
                                std::int64_t bytes) {
    prepare_reductions(1);
    await_begun();
    const bool backwards = to > from;
    for (std::int64_t done = 0; done < bytes;) {
        const std::int64_t part = std::min(part_, bytes - done);
        const std::int64_t at = backwards ? bytes - done - part : done;
        begin(source.read, bounce_.data, from + at, part);
        await_begun();
        begin(target.write, to + at, bounce_.data, part);
        await_begun();
        done += part;
    }
}

void DeviceMemory::add_reached(const char* begin, std::int64_t bytes, const device::Place& place) {
    const device::Status status = add(begin, bytes, place);
    note(status);
    reached_regions_ += status == nullptr;
}

const char* DeviceMemory::reach(const device::Exported& exported, std::int64_t bytes, const device::Place& place) {
    if (exported.process == device::this_process()) {
        // Of a neighbour in this process, or this one's own.
        const char* const own = reinterpret_cast<const char*>(exported.begin) + exported.offset;
        if (!holds(own)) add_reached(own, bytes, place);
        return own;
    }
    for (const Reached& one : reached_)
        if (one.exported.process == exported.process && one.exported.begin == exported.begin &&
            one.exported.id == exported.id && same_queue(one.place, place)) {
            device::ipc_counts.hits.fetch_add(1, std::memory_order_relaxed);
            return one.mapping.begin + exported.offset;
        }
    const device::Imports::Mapping mapping = device::Imports::instance().take(place, exported);
    if (!mapping.begin) return nullptr;
    reached_.push_back({exported, place, mapping});
    add_reached(mapping.begin, mapping.bytes, place);
    return mapping.begin + exported.offset;
}

void DeviceMemory::let_go() {
    for (const Reached& one : reached_) device::Imports::instance().give_back(one.mapping);
    reached_.clear();
    regions_.resize(regions_.size() - std::exchange(reached_regions_, 0));
}

int DeviceMemory::combine(std::uint8_t index, const char* left, const char* right, char* target, std::int64_t bytes) {
    if (!find(left) && !find(right) && !find(target)) return host_->combine(index, left, right, target, bytes);
    if (bytes <= 0 || combine_on_device(index, left, right, target, bytes)) return 0;
    return combine_on_host(index, left, right, target, bytes);
}

std::optional<KnownOperation> DeviceMemory::kernel_for(std::uint8_t operation, device::Driver& driver) const {
    auto known = host_->known(operation);
    if (no_kernels_ || (known && !driver.has_kernel(known->op, known->element))) known.reset();
    return known;
}

bool DeviceMemory::combine_on_device(std::uint8_t index, const char* left, const char* right, char* target,
                                     std::int64_t bytes) {
    const Region* const a = find(left);
    const Region* const b = find(right);
    const Region* const to = find(target);
    // Regions of one place share their ways.
    if (!a || !b || !to || a->write != to->write || b->write != to->write) return false;
    Way& way = ways_[to->write];
    const auto known = kernel_for(index, driver_of(way));
    if (!known) return false;
    // Devices read no element that isn't aligned.
    const auto element = static_cast<std::int64_t>(kernels::bytes_of(known->element).size);
    const auto all = reinterpret_cast<std::uintptr_t>(left) | reinterpret_cast<std::uintptr_t>(right) |
                     reinterpret_cast<std::uintptr_t>(target);
    if (all % static_cast<std::uintptr_t>(element) != 0) return false;
    if (driver_of(way).combine(way.lane.place, way.lane.queue, known->op, known->element, left, right, target,
                               bytes / element)) {
        no_kernels_ = true;
        return false;
    }
    way.begun = has_begun_ = true;
    ++counts_.combined_on_device;
    return true;
}

int DeviceMemory::combine_on_host(std::uint8_t index, const char* left, const char* right, char* target,
                                  std::int64_t bytes) {
    const std::int64_t extent = host_->element_bytes(index);
    prepare_reductions(extent);
    await_begun();
    const Region* const a = find(left);
    const Region* const b = find(right);
    const Region* const to = find(target);
    const std::int64_t whole = part_ / extent * extent;
    // Elements may have holes, which aren't written.
    const bool keeps_holes = to && !host_->known(index);
    const auto bounce = [&](std::int64_t at, std::int64_t operand) {
        return bounce_.data + (at / whole % 2 * 3 + operand) * part_;
    };
    const auto bytes_at = [&](std::int64_t at) { return std::min(whole, bytes - at); };
    std::array<std::uint64_t, 2> come{}, gone{};
    const auto fetch = [&](std::int64_t at) {
        await(gone[at / whole % 2]);
        if (a) begin(a->read, bounce(at, 0), left + at, bytes_at(at));
        if (b) begin(b->read, bounce(at, 1), right + at, bytes_at(at));
        if (keeps_holes) begin(to->read, bounce(at, 2), target + at, bytes_at(at));
        come[at / whole % 2] = has_begun_ ? mark() : 0;
    };
    int error = 0;
    fetch(0);
    for (std::int64_t at = 0; at < bytes; at += whole) {
        if (at + whole < bytes) fetch(at + whole);
        await(come[at / whole % 2]);
        const char* const from_left = a ? bounce(at, 0) : left + at;
        const char* const from_right = b ? bounce(at, 1) : right + at;
        char* const into = to ? bounce(at, 2) : target + at;
        if (error == 0) error = host_->combine(index, from_left, from_right, into, bytes_at(at));
        if (!to) continue;
        begin(to->write, target + at, into, bytes_at(at));
        gone[at / whole % 2] = mark();
    }
    // The next reduction has the same bounce buffers.
    for (const std::uint64_t mark : gone) await(mark);
    return error;
}

}  // namespace palmette::execute
