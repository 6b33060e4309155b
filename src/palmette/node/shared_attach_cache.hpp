// LRU cache of mappings of other processes' memory (XPMEM attachments), so that the next access needs no system call.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace palmette::runtime {

/// Maps memory of other members of the node into this process.
class SharedAttacher {
  public:
    virtual ~SharedAttacher() = default;
    /// Maps whole pages of `member`'s memory. Returns null where that can't be done.
    virtual char* attach(int member, std::uint64_t address, std::int64_t bytes) = 0;
    virtual void detach(char* mapped, std::int64_t bytes) = 0;
};

/// Mapped ranges of all members, ordered by (member, address). Ranges of one member never overlap: a new one that
/// overlaps or touches others is merged with them. What was found since the last `settle` stays mapped until then; of
/// the others the least recently used are evicted first when a bound is reached.
class AttachCache {
  public:
    struct Bounds {
        std::int64_t entries = 128;
        std::int64_t bytes = std::int64_t{1} << 30;
    };
    struct Counts {
        std::int64_t hits = 0;
        std::int64_t misses = 0;
        std::int64_t refusals = 0;   ///< misses not mapped: the attacher failed or the bounds left no capacity
        std::int64_t evictions = 0;  ///< to stay within the bounds
    };

    /// `attacher` must outlive the cache.
    AttachCache(SharedAttacher& attacher, Bounds bounds) : attacher_(attacher), bounds_(bounds) {}
    ~AttachCache();
    AttachCache(const AttachCache&) = delete;
    AttachCache& operator=(const AttachCache&) = delete;

    /// Where `member`'s memory [address, address + bytes) can be read here, until the next `settle`. Null: not mapped;
    /// read it otherwise.
    const char* find(int member, std::uint64_t address, std::int64_t bytes);
    /// Ends the lifetime of all pointers that `find` returned so far: their ranges may be unmapped from now on.
    void settle();

    [[nodiscard]] const Counts& counts() const { return counts_; }
    [[nodiscard]] std::int64_t entries() const { return static_cast<std::int64_t>(ranges_.size()); }
    [[nodiscard]] std::int64_t bytes() const { return bytes_; }

  private:
    struct Range {
        std::int64_t bytes;
        char* mapped;
        std::int64_t last_use;  ///< the time of the last find
        std::int64_t period;    ///< the settle() period of it
    };
    using Ranges = std::map<std::pair<int, std::uint64_t>, Range>;

    Ranges::iterator remove(Ranges::iterator range);
    bool evict_for(std::int64_t bytes);

    SharedAttacher& attacher_;
    Bounds bounds_;
    Counts counts_;
    Ranges ranges_;
    std::vector<std::pair<char*, std::int64_t>> retired_;  ///< replaced, but perhaps still read in this period
    std::int64_t bytes_ = 0;                               ///< of ranges_ and retired_
    std::int64_t time_ = 0;
    std::int64_t period_ = 0;
};

}  // namespace palmette::runtime
