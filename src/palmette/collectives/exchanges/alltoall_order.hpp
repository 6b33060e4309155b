// Schedule of an all-to-all's messages that keeps links of every level busy in both directions all the time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

/// One message as its sender or its receiver sees it.
struct Turn {
    std::uint32_t when = 0;
    std::int32_t source = 0;  ///< position
    std::int32_t target = 0;  ///< position
    std::int32_t level = 0;   ///< the outermost level of the job that separates them; the number of levels: none
    /// A total order, equal on all ranks: steps that wait only for earlier turns can't deadlock.
    friend auto operator<=>(const Turn&, const Turn&) = default;
};

/// The turns of messages between all pairs of positions, as arithmetic on one pair.
///
/// - shift: in turn i rank me sends to me+i and receives from me-i. Near ranks come first, so uplinks stay empty, then
///   full, then empty.
/// - xor: in turn i rank me exchanges with me xor i; needs a power of two.
/// - balanced: the groups that separate source and target, of a and c members, have a*c messages for each other; these
///   are spread evenly over the whole time, also for every single source and target. So at any moment each
///   uplink carries its groups' messages in proportion to their numbers, and none runs idle before the others.
///
///       leaves {0 1 2} {3 4 5} {6 7}, what rank 0 sends, by leaf:   shift      0 0 1 1 1 2 2   (to 1 2 3 4 5 6 7)
///                                                                   balanced   1 0 2 1 0 1 2   (to 3 1 6 4 2 5 7)
class TurnOrder {
  public:
    enum class Kind { balanced, shift, exclusive_or };
    /// `job` must outlive this.
    TurnOrder(const Job& job, Kind kind) : job_(job), kind_(kind), depth_(job.levels().size()) {}
    /// The balanced order of messages between groups, one per pair: all of a group's members have the same turns.
    /// `groups` must be those of a level of the job, and outlive this, too.
    TurnOrder(const Job& job, const topology::Partition& groups);

    /// index / of as a fixed-point fraction of 2^32.
    static std::uint32_t part(std::int64_t index, std::int64_t of);

    Turn turn(std::int32_t source, std::int32_t target) const;
    /// All turns of a source or target in order, without the rank's own block.
    std::vector<Turn> of_source(std::int32_t source) const;
    std::vector<Turn> of_target(std::int32_t target) const;

    /// The words that a specification uses, the default first.
    static const std::vector<std::string_view>& words();
    static Kind named(std::string_view word);

  private:
    std::uint32_t when(std::int32_t source, std::int32_t target, std::int32_t level) const;
    std::uint32_t balanced(std::int32_t source, std::int32_t target, std::int32_t level) const;
    std::int32_t separating_level(std::int32_t source, std::int32_t target) const;

    /// The scheduled unit (rank or group) that a position belongs to.
    std::int32_t index(std::int32_t position) const { return groups_ ? groups_->group_of(position) : position; }

    const Job& job_;
    Kind kind_;
    const topology::Partition* groups_ = nullptr;  ///< the scheduled units; null: the ranks
    std::size_t depth_;                            ///< number of levels above them
};

}  // namespace palmette::collectives
