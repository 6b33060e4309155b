// Which tags the operations on one hidden communicator use.
#pragma once

#include <cstdint>
#include <optional>

namespace palmette::runtime {

/// Blocking operations use the tags from 0 on, one operation at a time: half of all. The next quarter goes to nonblocking ones in turn, the last to
/// persistent ones, which keep theirs for good, since they may be started in any order. All ranks make the same calls in the same order.
class TagSpace {
  public:
    struct Range {
        int first = 0;
        int count = 0;
        bool overlaps(const Range& other) const {
            return first < other.first + other.count && other.first < first + count;
        }
    };

    /// Tags from 0 to `limit` may be used.
    explicit TagSpace(int limit) : quarter_(limit / 4) {}

    std::int64_t for_blocking() const { return std::int64_t{quarter_} * 2; }

    /// For the next nonblocking operation; nothing where that many never fit. Ranges come back after a while: the one before must have ended.
    std::optional<Range> take(std::int64_t count) {
        if (count > quarter_) return std::nullopt;
        if (turn_ + count > quarter_) turn_ = 0;
        const Range out{quarter_ * 2 + turn_, static_cast<int>(count)};
        turn_ += out.count;
        return out;
    }
    /// For the next persistent operation; nothing when all are given away.
    std::optional<Range> keep(std::int64_t count) {
        if (count > quarter_ - kept_) return std::nullopt;
        const Range out{quarter_ * 3 + kept_, static_cast<int>(count)};
        kept_ += out.count;
        return out;
    }

  private:
    int quarter_;
    int turn_ = 0;
    int kept_ = 0;
};

}  // namespace palmette::runtime
