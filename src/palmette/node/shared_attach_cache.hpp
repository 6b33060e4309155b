// Which parts of other processes' memory are mapped here, so that the next access to them costs nothing.
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

/// Mapped ranges of all members, in order of (member, address). Ranges of one member never overlap: a new one that
/// meets others replaces them by one that covers all. What was found since the last `settle` stays mapped until then;
/// beyond that the least recently used ranges go first when a bound is met.
class AttachCache {
  public:
    struct Bounds {
        std::int64_t entries = 128;
        std::int64_t bytes = std::int64_t{1} << 30;
    };
    struct Counts {
        std::int64_t hits = 0;
        std::int64_t misses = 0;
        std::int64_t refusals = 0;   ///< of the misses: not mapped, the attacher couldn't or no room was left
        std::int64_t evictions = 0;  ///< to keep the bounds
    };

    /// `attacher` must outlive the cache.
    AttachCache(SharedAttacher& attacher, Bounds bounds) : attacher_(attacher), bounds_(bounds) {}
    ~AttachCache();
    AttachCache(const AttachCache&) = delete;
    AttachCache& operator=(const AttachCache&) = delete;

    /// Where `member`'s memory [address, address + bytes) can be read here, until the next `settle`. Null: not mapped;
    /// read it otherwise.
    const char* find(int member, std::uint64_t address, std::int64_t bytes);
    /// Nobody uses what was found before any more: it may be unmapped from now on.
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
    bool make_room(std::int64_t bytes);

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
