// Tag allocation for the operations on one shadow communicator.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace palmette::runtime {

/// Blocking operations use the tags from 0 on, one operation at a time: half of all. The next quarter goes to
/// nonblocking ones, round-robin, an eighth to persistent ones, which keep theirs permanently, since they may be
/// started in any order, and the last to compositions, which release theirs. Of each kind all ranks make the same calls
/// in the same order.
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

    /// For the next nonblocking operation; nothing where that many never fit. Ranges are reused after a while: the
    /// previous user must have completed.
    std::optional<Range> take(std::int64_t count) {
        if (count > quarter_) return std::nullopt;
        if (turn_ + count > quarter_) turn_ = 0;
        const Range out{quarter_ * 2 + turn_, static_cast<int>(count)};
        turn_ += out.count;
        return out;
    }
    /// For the next persistent operation; nothing when they are exhausted.
    std::optional<Range> keep(std::int64_t count) {
        if (count > eighth() - kept_) return std::nullopt;
        const Range out{quarter_ * 3 + kept_, static_cast<int>(count)};
        kept_ += out.count;
        return out;
    }
    /// For the next composition: the first gap that is wide enough; nothing when there is none.
    std::optional<Range> lend(std::int64_t count) {
        std::int64_t at = 0;
        for (const auto& [first, taken] : lent_) {
            if (first - at >= count) break;
            at = first + taken;
        }
        if (count > eighth() - at) return std::nullopt;
        const auto first = static_cast<int>(at), wide = static_cast<int>(count);
        lent_[first] = wide;
        return Range{lent_from() + first, wide};
    }
    void give_back(const Range& range) { lent_.erase(range.first - lent_from()); }

  private:
    int eighth() const { return quarter_ / 2; }
    int lent_from() const { return quarter_ * 3 + eighth(); }

    int quarter_;
    int turn_ = 0;
    int kept_ = 0;
    std::map<int, int> lent_;  ///< first one, and how many
};

}  // namespace palmette::runtime
