// LRU cache of what is held for ranges of memory: mappings of other processes' memory, registrations with a device.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <utility>

namespace palmette::base {

/// Makes and drops what the cache holds.
class RangeHolder {
  public:
    virtual ~RangeHolder() = default;
    /// For whole pages of `space`, whose meaning is the holder's. 0: it can't be done.
    virtual std::uintptr_t hold(int space, std::uint64_t begin, std::int64_t bytes) = 0;
    /// Whether hold() may succeed once something has been dropped.
    virtual bool exhausted() const { return false; }
    virtual void drop(std::uintptr_t handle, std::int64_t bytes) noexcept = 0;
};

/// Ranges of whole pages, ordered by (space, address); those of one space never overlap. Finding one costs O(log n),
/// and no call of the holder. A range that is taken is held until it is released, even if it was merged with others or
/// invalidated meanwhile; of the others the least recently used are dropped first when a bound is reached. Not for
/// several threads at once.
class RangeCache {
  public:
    /// Which ranges a new one is merged with: those that it overlaps, or those that it touches, too.
    enum class Merge : std::uint8_t { overlapping, touching };
    struct Bounds {
        std::int64_t entries = 128;
        std::int64_t bytes = std::int64_t{1} << 30;
    };
    struct Counts {
        std::int64_t hits = 0;
        std::int64_t misses = 0;
        std::int64_t refusals = 0;       ///< misses not held: the holder failed, or the bounds left no capacity
        std::int64_t evictions = 0;      ///< to stay within the bounds, or since the holder was exhausted
        std::int64_t invalidations = 0;  ///< ranges removed by invalidate()
    };
    struct Range {
        int space = 0;
        std::uint64_t begin = 0;
        std::int64_t bytes = 0;
        std::uintptr_t handle = 0;
        std::int64_t uses = 0;  ///< take() less release()

        std::uint64_t end() const { return begin + static_cast<std::uint64_t>(bytes); }
    };

    /// `holder` must outlive the cache.
    RangeCache(RangeHolder& holder, Bounds bounds, Merge merge) : holder_(holder), bounds_(bounds), merge_(merge) {}
    ~RangeCache();
    RangeCache(const RangeCache&) = delete;
    RangeCache& operator=(const RangeCache&) = delete;

    /// What is held for a range that contains [address, address + bytes), until it is released. Null: it can't be held.
    Range* take(int space, std::uint64_t address, std::int64_t bytes);
    void release(Range* range) noexcept;
    /// No range with pages of [address, address + bytes) is found from now on. Returns how many there were.
    std::int64_t invalidate(int space, std::uint64_t address, std::int64_t bytes) noexcept;

    [[nodiscard]] const Counts& counts() const { return counts_; }
    /// Number of ranges that can be found.
    [[nodiscard]] std::int64_t entries() const { return static_cast<std::int64_t>(ranges_.size()); }
    /// Bytes held, including those of removed ranges still in use.
    [[nodiscard]] std::int64_t bytes() const { return bytes_; }

  private:
    using Recency = std::list<Range>;
    using Ranges = std::map<std::pair<int, std::uint64_t>, Recency::iterator>;

    Ranges::iterator first_overlap(int space, std::uint64_t begin, bool touching);
    Ranges::iterator remove(Ranges::iterator range) noexcept;
    bool evict_for(std::int64_t bytes);
    bool evict_oldest();

    RangeHolder& holder_;
    Bounds bounds_;
    Merge merge_;
    Counts counts_;
    Ranges ranges_;
    Recency recent_;   ///< ranges_, the most recently used first
    Recency retired_;  ///< removed, but in use
    std::int64_t bytes_ = 0;
};

}  // namespace palmette::base
