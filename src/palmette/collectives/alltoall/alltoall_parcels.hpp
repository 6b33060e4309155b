// Parcels: aggregated messages between groups of an all-to-all. Peer arithmetic only.
#pragma once

#include <optional>
#include <vector>

#include "palmette/plan/blocks.hpp"
#include "palmette/topology/partition.hpp"

namespace palmette::collectives {

/// One message between two groups: the blocks of some members of one for all members of the other.
struct Parcel {
    std::int32_t from = 0, to = 0;     ///< positions
    plan::Interval sources;            ///< positions in the sender's group
    std::int32_t group = 0;            ///< the receiver's group
    std::int32_t part = 0, parts = 1;  ///< index and number of the parcels from group to group
};

/// Every group is cut in parts as evenly as possible, each led by its first member; in a group smaller than the number
/// of leaders every member leads.
///  - sources: a part's leader sends the part's blocks, one message to each other group: L (N-1) messages a group. As
///    many leaders as members: nothing is collected, and g (N-1) messages of g blocks leave a group.
///  - destinations: a leader sends the whole group's blocks to its share of the other groups: N-1 messages of g^2
///    blocks leave a group.
class Parcels {
  public:
    enum class Split { destinations, sources };
    /// `groups` must outlive this.
    Parcels(const topology::Partition& groups, std::int32_t leaders, Split split)
        : groups_(groups), leaders_(leaders), split_(split) {}

    const topology::Partition& groups() const { return groups_; }
    plan::Interval members(std::int32_t group) const { return {groups_.first(group), groups_.size_of(group)}; }

    /// The parcels that a position sends to, and receives from, other groups; empty unless it leads a part.
    std::vector<Parcel> from(std::int32_t position) const;
    std::vector<Parcel> to(std::int32_t position) const;

    /// Upper bound of the sources in other groups that one position receives blocks of.
    std::int64_t most_sources() const;

  private:
    std::int32_t leaders_of(std::int32_t group) const;
    plan::Interval part(std::int32_t group, std::int32_t leader) const;
    std::int32_t leader_at(std::int32_t group, std::int32_t leader) const;
    /// The part that a position leads.
    std::optional<std::int32_t> leads(std::int32_t group, std::int32_t position) const;
    /// Numbers 0..N-2 of the pairs of groups: all different for one source group, and for one target group.
    std::int32_t lane(std::int32_t source_group, std::int32_t target_group) const;
    /// Rotation of the receiving leaders on a lane, which balances their load where there are more receiving than
    /// sending leaders.
    static std::int32_t turned(std::int32_t lane, std::int32_t senders, std::int32_t receivers);

    const topology::Partition& groups_;
    std::int32_t leaders_;
    Split split_;
};

}  // namespace palmette::collectives
