// Positions 0..p-1 cut into contiguous groups: one level of a job's tree.
#pragma once

#include <cstdint>
#include <vector>

namespace palmette::topology {

/// Equal groups are kept as one number, uneven ones as their first positions.
class Partition {
  public:
    Partition() = default;
    /// Groups of `group_size` positions; the last one may be smaller. group_size >= 1.
    static Partition even(std::int32_t size, std::int32_t group_size);
    /// `firsts`: ascending first positions, beginning with 0. Becomes even by itself where it can. Throws base::Error
    /// on a bad list.
    static Partition from_firsts(std::int32_t size, std::vector<std::int32_t> firsts);

    std::int32_t size() const { return size_; }
    std::int32_t count() const;
    std::int32_t group_of(std::int32_t position) const;
    /// First position of a group; first(count()) is size().
    std::int32_t first(std::int32_t group) const;
    std::int32_t end(std::int32_t group) const { return first(group + 1); }
    std::int32_t size_of(std::int32_t group) const { return end(group) - first(group); }
    /// Size of every group but perhaps the last, or 0 when groups are uneven.
    std::int32_t even_size() const { return even_size_; }
    bool all_single() const { return even_size_ == 1; }
    /// Size of the largest group.
    std::int32_t largest() const { return largest_; }
    /// Size of the smallest group, 0 where there is none.
    std::int32_t smallest() const { return smallest_; }

    friend bool operator==(const Partition&, const Partition&) = default;

  private:
    std::int32_t size_ = 0;
    std::int32_t even_size_ = 0;
    std::int32_t largest_ = 0;
    std::int32_t smallest_ = 0;
    std::vector<std::int32_t> firsts_;
};

}  // namespace palmette::topology
