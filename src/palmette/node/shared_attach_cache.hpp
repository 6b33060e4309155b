// LRU cache of mappings of other processes' memory (XPMEM attachments), so that the next access needs no system call.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/base/range_cache.hpp"

namespace palmette::node {

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
class AttachCache final : private base::RangeHolder {
  public:
    using Bounds = base::RangeCache::Bounds;
    using Counts = base::RangeCache::Counts;

    /// `attacher` must outlive the cache.
    AttachCache(SharedAttacher& attacher, Bounds bounds)
        : attacher_(attacher), ranges_(*this, bounds, base::RangeCache::Merge::touching) {}

    /// Where `member`'s memory [address, address + bytes) can be read here, until the next `settle`. Null: not mapped;
    /// read it otherwise.
    const char* find(int member, std::uint64_t address, std::int64_t bytes);
    /// Ends the lifetime of all pointers that `find` returned so far: their ranges may be unmapped from now on.
    void settle();

    [[nodiscard]] const Counts& counts() const { return ranges_.counts(); }
    [[nodiscard]] std::int64_t entries() const { return ranges_.entries(); }
    [[nodiscard]] std::int64_t bytes() const { return ranges_.bytes(); }

  private:
    std::uintptr_t hold(int member, std::uint64_t begin, std::int64_t bytes) override;
    void drop(std::uintptr_t mapped, std::int64_t bytes) noexcept override;

    SharedAttacher& attacher_;
    base::RangeCache ranges_;
    std::vector<base::RangeCache::Range*> found_;  ///< since the last settle(), each once
};

}  // namespace palmette::node
