#include "palmette/plan/blocks.hpp"

#include <algorithm>

namespace palmette::plan {

void Blocks::insert(Interval interval) {
    if (interval.count <= 0) return;
    if (intervals_.empty() || intervals_.back().end() < interval.first) {
        intervals_.push_back(interval);
        return;
    }
    auto at = std::lower_bound(intervals_.begin(), intervals_.end(), interval.first,
                               [](const Interval& i, std::int64_t first) { return i.first < first; });
    if (at != intervals_.begin() && (at - 1)->end() == interval.first) {
        --at;
        at->count += interval.count;
    } else {
        at = intervals_.insert(at, interval);
    }
    if (at + 1 != intervals_.end() && at->end() == (at + 1)->first) {
        at->count += (at + 1)->count;
        intervals_.erase(at + 1);
    }
}

void Blocks::unite(const Blocks& other) {
    for (const Interval& interval : other.intervals_) insert(interval);
}

Blocks Blocks::without(std::int64_t block) const {
    Blocks out;
    for (const Interval& interval : intervals_) {
        if (block < interval.first || block >= interval.end()) {
            out.insert(interval);
            continue;
        }
        out.insert({interval.first, block - interval.first});
        out.insert({block + 1, interval.end() - block - 1});
    }
    return out;
}

bool Blocks::contains(std::int64_t block) const {
    const auto after = std::upper_bound(intervals_.begin(), intervals_.end(), block,
                                        [](std::int64_t b, const Interval& i) { return b < i.first; });
    return after != intervals_.begin() && block < (after - 1)->end();
}

std::int64_t Blocks::count() const {
    std::int64_t total = 0;
    for (const Interval& interval : intervals_) total += interval.count;
    return total;
}

}  // namespace palmette::plan
