// Sets of blocks as sorted disjoint intervals.
#pragma once

#include <cstdint>
#include <vector>

namespace palmette::plan {

/// `count` consecutive blocks from `first` on.
struct Interval {
    std::int64_t first = 0;
    std::int64_t count = 0;
    std::int64_t end() const { return first + count; }
    friend bool operator==(const Interval&, const Interval&) = default;
};

/// Disjoint intervals in ascending order, never touching each other: two equal sets have equal lists, so the two
/// sides of a message agree on the order of its blocks.
class Blocks {
  public:
    Blocks() = default;
    Blocks(std::int64_t first, std::int64_t count) { insert({first, count}); }

    /// Unites with an interval that must not overlap this set.
    void insert(Interval interval);
    void unite(const Blocks& other);
    /// Without one block.
    Blocks without(std::int64_t block) const;

    bool contains(std::int64_t block) const;
    bool empty() const { return intervals_.empty(); }
    std::int64_t count() const;
    const std::vector<Interval>& intervals() const { return intervals_; }
    friend bool operator==(const Blocks&, const Blocks&) = default;

  private:
    std::vector<Interval> intervals_;
};

}  // namespace palmette::plan
