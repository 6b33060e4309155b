#include "palmette/device/ipc.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>

namespace palmette::device {

constinit IpcCounts ipc_counts;

namespace {

void add_one(std::atomic<std::int64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

bool holds(const Exported& known, const void* address) {
    const auto at = reinterpret_cast<std::uint64_t>(address);
    return at >= known.begin && at < known.begin + static_cast<std::uint64_t>(known.allocation);
}

std::uint64_t make_word() {
    std::uint64_t word = 0;
    if (getrandom(&word, sizeof word, GRND_NONBLOCK) == sizeof word) return word;
    const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
    return static_cast<std::uint64_t>(ticks) * 0x9e3779b97f4a7c15U ^ static_cast<std::uint64_t>(getpid());
}

}  // namespace

std::uint64_t this_process() {
    static std::mutex mutex;
    static pid_t owner = 0;
    static std::uint64_t word = 0;
    const std::lock_guard lock(mutex);
    if (owner != getpid()) {
        owner = getpid();
        word = make_word();
    }
    return word;
}

Exports& Exports::instance() {
    // Never destroyed: calls may come until the process ends.
    static Exports* all = new Exports;
    return *all;
}

bool Exports::find(const Place& place, const void* address, Exported& out) {
    const std::lock_guard lock(mutex_);
    const auto answer = [&](const ExportState& known) {
        out = known.exported;
        out.offset = static_cast<std::int64_t>(reinterpret_cast<std::uint64_t>(address) - out.begin);
        return known.works;
    };
    const std::uint64_t self = this_process();
    // An id is an allocation's for ever; without one, memory may have been freed and allocated again.
    for (ExportState& known : known_)
        if (place.id != 0 && known.exported.id == place.id && known.exported.process == self &&
            holds(known.exported, address)) {
            known.last_use = ++time_;
            return answer(known);
        }
    ExportState fresh;
    fresh.last_use = ++time_;
    Exported& exported = fresh.exported;
    exported.process = self;
    exported.id = place.id;
    void* begin = nullptr;
    if (place.driver->range_of(place, address, begin, exported.allocation)) return false;
    exported.begin = reinterpret_cast<std::uint64_t>(begin);
    if (!holds(exported, address)) return false;
    fresh.works = place.driver->exports(address) && !place.driver->export_memory(place, begin, exported.handle);
    add_one(fresh.works ? ipc_counts.exports : ipc_counts.unexported);
    if (place.id != 0) {
        // What lay here before is gone.
        std::erase_if(known_, [&](const ExportState& known) {
            return known.exported.process != self || known.exported.begin == exported.begin;
        });
        if (known_.size() >= most)
            known_.erase(std::min_element(known_.begin(), known_.end(), [](const ExportState& a, const ExportState& b) {
                return a.last_use < b.last_use;
            }));
        known_.push_back(fresh);
    }
    return answer(fresh);
}

Imports& Imports::instance() {
    static Imports* all = new Imports;
    return *all;
}

Imports::All::iterator Imports::close(All::iterator one) {
    if (one->second.begin) {
        one->second.place.driver->close_memory(one->second.place, one->second.begin);
        add_one(ipc_counts.closes);
    }
    return all_.erase(one);
}

bool Imports::make_room() {
    while (all_.size() >= most_) {
        auto oldest = all_.end();
        for (auto one = all_.begin(); one != all_.end(); ++one)
            if (one->second.users == 0 && (oldest == all_.end() || one->second.last_use < oldest->second.last_use))
                oldest = one;
        if (oldest == all_.end()) return false;
        if (oldest->second.begin) add_one(ipc_counts.evictions);
        close(oldest);
    }
    return true;
}

Imports::Mapping Imports::take(const Place& place, const Exported& exported) {
    if (exported.offset < 0 || exported.offset >= exported.allocation) return {};
    const std::lock_guard lock(mutex_);
    for (auto one = all_.begin(); one != all_.end();) {
        Open& open = one->second;
        const bool same_memory = open.exported.process == exported.process && open.exported.begin == exported.begin;
        if (!same_memory || !same_queue(open.place, place)) {
            ++one;
            continue;
        }
        if (open.exported.id == exported.id && open.exported.allocation == exported.allocation &&
            (exported.id != 0 || open.users > 0)) {
            open.last_use = ++time_;
            if (!open.begin) return {};
            ++open.users;
            add_one(ipc_counts.hits);
            return {open.begin, open.exported.allocation, one->first};
        }
        // Freed there, and allocated anew.
        if (open.users == 0)
            one = close(one);
        else
            ++one;
    }
    if (!make_room()) {
        add_one(ipc_counts.refusals);
        return {};
    }
    Open open;
    open.place = place;
    open.exported = exported;
    open.last_use = ++time_;
    void* begin = nullptr;
    if (place.driver->reaches(place, exported.handle.bus_id) &&
        !place.driver->open_memory(place, exported.handle, begin)) {
        open.begin = static_cast<char*>(begin);
        open.users = 1;
        add_one(ipc_counts.opens);
    } else {
        add_one(ipc_counts.refusals);
    }
    all_.emplace(next_, open);
    return open.begin ? Mapping{open.begin, exported.allocation, next_++} : (++next_, Mapping{});
}

void Imports::give_back(const Mapping& mapping) {
    const std::lock_guard lock(mutex_);
    const auto one = all_.find(mapping.number);
    if (one == all_.end()) return;
    --one->second.users;
    // Nothing would tell whether the next one there is the same.
    if (one->second.users == 0 && one->second.exported.id == 0) close(one);
}

void Imports::close_all() {
    const std::lock_guard lock(mutex_);
    for (auto one = all_.begin(); one != all_.end();) one = one->second.users == 0 ? close(one) : std::next(one);
}

std::size_t Imports::count() {
    const std::lock_guard lock(mutex_);
    return all_.size();
}

void Imports::set_most(std::size_t most) {
    const std::lock_guard lock(mutex_);
    most_ = std::max<std::size_t>(1, most);
}

}  // namespace palmette::device
