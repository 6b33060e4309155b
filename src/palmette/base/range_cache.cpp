#include "palmette/base/range_cache.hpp"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

namespace palmette::base {
namespace {

struct Pages {
    std::uint64_t begin, end;
};

/// The whole pages, of 4 to 64 KiB on arm64; nothing for what is no range.
std::optional<Pages> pages_of(std::uint64_t address, std::int64_t bytes) {
    static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    const auto length = static_cast<std::uint64_t>(bytes);
    if (bytes < 0 || address > std::numeric_limits<std::uint64_t>::max() - length - page) return std::nullopt;
    return Pages{address / page * page, (address + length + page - 1) / page * page};
}

}  // namespace

RangeCache::~RangeCache() {
    for (const Recency* const list : {&recent_, &retired_})
        for (const Range& range : *list) holder_.drop(range.handle, range.bytes);
}

RangeCache::Range* RangeCache::take(int space, std::uint64_t address, std::int64_t bytes) {
    const std::optional<Pages> pages = pages_of(address, bytes);
    if (!pages) {
        ++counts_.misses, ++counts_.refusals;
        return nullptr;
    }
    const auto after = ranges_.upper_bound({space, address});
    if (after != ranges_.begin()) {
        const Recency::iterator found = std::prev(after)->second;
        if (found->space == space && found->end() >= address + static_cast<std::uint64_t>(bytes)) {
            ++counts_.hits;
            recent_.splice(recent_.begin(), recent_, found);
            ++found->uses;
            return &*found;
        }
    }
    ++counts_.misses;

    auto [begin, end] = *pages;
    const bool touching = merge_ == Merge::touching;
    for (auto range = first_overlap(space, begin, touching);
         range != ranges_.end() && range->first.first == space &&
         (touching ? range->first.second <= end : range->first.second < end);) {
        begin = std::min(begin, range->second->begin);
        end = std::max(end, range->second->end());
        range = remove(range);
    }
    // Merged with its neighbours it would exceed the bound: this range alone.
    if (end - begin > static_cast<std::uint64_t>(bounds_.bytes)) begin = pages->begin, end = pages->end;

    const auto size = static_cast<std::int64_t>(end - begin);
    std::uintptr_t handle = evict_for(size) ? holder_.hold(space, begin, size) : 0;
    while (handle == 0 && holder_.exhausted() && evict_oldest()) handle = holder_.hold(space, begin, size);
    if (handle == 0) {
        ++counts_.refusals;
        return nullptr;
    }
    recent_.push_front({space, begin, size, handle, 1});
    ranges_.insert({{space, begin}, recent_.begin()});
    bytes_ += size;
    return &recent_.front();
}

void RangeCache::release(Range* range) noexcept {
    if (--range->uses > 0) return;
    const auto found = std::find_if(retired_.begin(), retired_.end(), [&](const Range& one) { return &one == range; });
    if (found == retired_.end()) return;
    holder_.drop(range->handle, range->bytes);
    bytes_ -= range->bytes;
    retired_.erase(found);
}

std::int64_t RangeCache::invalidate(int space, std::uint64_t address, std::int64_t bytes) noexcept {
    const std::optional<Pages> pages = pages_of(address, bytes);
    if (!pages) return 0;
    std::int64_t removed = 0;
    for (auto range = first_overlap(space, pages->begin, false);
         range != ranges_.end() && range->first.first == space && range->first.second < pages->end; ++removed)
        range = remove(range);
    counts_.invalidations += removed;
    return removed;
}

/// The first range that ends behind `begin`, or at it if it only has to touch.
RangeCache::Ranges::iterator RangeCache::first_overlap(int space, std::uint64_t begin, bool touching) {
    const auto first = ranges_.lower_bound({space, begin});
    if (first == ranges_.begin()) return first;
    const Range& before = *std::prev(first)->second;
    const bool meets = before.space == space && (touching ? before.end() >= begin : before.end() > begin);
    return meets ? std::prev(first) : first;
}

/// Drops a range; what is in use when it is released.
RangeCache::Ranges::iterator RangeCache::remove(Ranges::iterator range) noexcept {
    const Recency::iterator gone = range->second;
    if (gone->uses > 0) {
        retired_.splice(retired_.end(), recent_, gone);
    } else {
        holder_.drop(gone->handle, gone->bytes);
        bytes_ -= gone->bytes;
        recent_.erase(gone);
    }
    return ranges_.erase(range);
}

bool RangeCache::evict_for(std::int64_t bytes) {
    const auto full = [&] {
        return bytes_ + bytes > bounds_.bytes ||
               static_cast<std::int64_t>(ranges_.size() + retired_.size()) >= bounds_.entries;
    };
    while (full())
        if (!evict_oldest()) return false;
    return true;
}

/// The least recently used that isn't in use; those in use that are passed over are few.
bool RangeCache::evict_oldest() {
    for (auto oldest = recent_.end(); oldest != recent_.begin();) {
        --oldest;
        if (oldest->uses > 0) continue;
        remove(ranges_.find({oldest->space, oldest->begin}));
        ++counts_.evictions;
        return true;
    }
    return false;
}

}  // namespace palmette::base
