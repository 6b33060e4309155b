#include "palmette/node/shared_attach_cache.hpp"

#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace palmette::runtime {

AttachCache::~AttachCache() {
    settle();
    for (const auto& [key, range] : ranges_) attacher_.detach(range.mapped, range.bytes);
}

const char* AttachCache::find(int member, std::uint64_t address, std::int64_t bytes) {
    const std::uint64_t wanted_end = address + static_cast<std::uint64_t>(bytes);
    const auto ends = [](const auto& entry) {
        return entry.first.second + static_cast<std::uint64_t>(entry.second.bytes);
    };

    auto after = ranges_.upper_bound({member, address});
    if (after != ranges_.begin()) {
        auto& [key, range] = *std::prev(after);
        if (key.first == member && ends(*std::prev(after)) >= wanted_end && key.second <= address) {
            ++counts_.hits;
            range.last_use = ++time_;
            range.period = period_;
            return range.mapped + (address - key.second);
        }
    }
    ++counts_.misses;

    // Whole pages, of 4 to 64 KiB on arm64, and with them all ranges that overlap or touch.
    static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    std::uint64_t begin = address / page * page;
    std::uint64_t end = (wanted_end + page - 1) / page * page;
    auto first = ranges_.lower_bound({member, begin});
    if (first != ranges_.begin() && std::prev(first)->first.first == member && ends(*std::prev(first)) >= begin)
        --first;
    auto last = first;
    for (; last != ranges_.end() && last->first.first == member && last->first.second <= end; ++last) {
        begin = std::min(begin, last->first.second);
        end = std::max(end, ends(*last));
    }
    for (auto range = first; range != last;) range = remove(range);

    // Merged with its neighbours it would exceed the bound: map this range alone.
    if (end - begin > static_cast<std::uint64_t>(bounds_.bytes)) {
        begin = address / page * page;
        end = (wanted_end + page - 1) / page * page;
    }
    const auto size = static_cast<std::int64_t>(end - begin);
    char* mapped = evict_for(size) ? attacher_.attach(member, begin, size) : nullptr;
    if (!mapped) {
        ++counts_.refusals;
        return nullptr;
    }
    ranges_.insert({{member, begin}, {size, mapped, ++time_, period_}});
    bytes_ += size;
    return mapped + (address - begin);
}

/// Removes a range; unmaps it now, or at the next settle() where it may still be read.
AttachCache::Ranges::iterator AttachCache::remove(Ranges::iterator range) {
    const Range& gone = range->second;
    if (gone.period == period_) {
        retired_.emplace_back(gone.mapped, gone.bytes);
    } else {
        attacher_.detach(gone.mapped, gone.bytes);
        bytes_ -= gone.bytes;
    }
    return ranges_.erase(range);
}

bool AttachCache::evict_for(std::int64_t bytes) {
    const auto held = [this] { return static_cast<std::int64_t>(ranges_.size() + retired_.size()); };
    while (bytes_ + bytes > bounds_.bytes || held() + 1 > bounds_.entries) {
        // A linear scan for the LRU entry: a hundred entries are negligible next to the system call that an eviction
        // costs.
        auto oldest = ranges_.end();
        for (auto range = ranges_.begin(); range != ranges_.end(); ++range)
            if (range->second.period != period_ &&
                (oldest == ranges_.end() || range->second.last_use < oldest->second.last_use))
                oldest = range;
        if (oldest == ranges_.end()) return false;
        remove(oldest);
        ++counts_.evictions;
    }
    return true;
}

void AttachCache::settle() {
    for (const auto& [mapped, bytes] : retired_) {
        attacher_.detach(mapped, bytes);
        bytes_ -= bytes;
    }
    retired_.clear();
    ++period_;
}

}  // namespace palmette::runtime
