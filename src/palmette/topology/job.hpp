// Job: the occupied part of a machine, with ranks in topology order, for which plans are made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "palmette/base/ids.hpp"
#include "palmette/base/json.hpp"
#include "palmette/topology/machine.hpp"
#include "palmette/topology/partition.hpp"
#include "palmette/topology/permutation.hpp"
#include "palmette/topology/placement.hpp"

namespace palmette::topology {

using base::Position;
using base::Rank;

/// One number per group of a level, stored once where all are equal.
class PerGroup {
  public:
    PerGroup() = default;
    explicit PerGroup(double uniform) : uniform_(uniform) {}
    explicit PerGroup(std::vector<double> values);
    double operator[](std::int32_t group) const {
        return values_.empty() ? uniform_ : values_[static_cast<std::size_t>(group)];
    }
    const std::vector<double>& values() const { return values_; }

  private:
    double uniform_ = 0;
    std::vector<double> values_;
};

/// One level of the job's tree: contiguous groups of positions.
struct JobLevel {
    std::string name;
    Partition groups;
    LevelCosts costs;                     ///< costs of messages that leave a group and stay in the parent group
    PerGroup up_bytes_per_s;              ///< capacity of the edge out of each group; 0: unknown or not there
    std::vector<std::string> names;       ///< names of the groups; may be empty
    PerGroup load;                        ///< share of each edge that other traffic takes
    double slowest_edge_bytes_per_s = 0;  ///< available capacity of the slowest known edge; 0: none is known

    /// Available capacity of an edge for this job; 0: unknown.
    double free_bytes_per_s(std::int32_t group) const { return up_bytes_per_s[group] * (1 - load[group]); }
};

/// An aggregator as a job sees it.
struct JobAggregator : Aggregator {
    std::int32_t level =
        -1;  ///< index into Job::levels: it stands at the switch of a group of this level; -1: above all
    std::int32_t group = 0;
};

/// Ranks in topology order. Levels are nested partitions of the positions, outermost first; a level that has one group
/// only, or that lies inside of hosts and holds one rank per group, carries no information and is dropped. `node` is
/// always kept. Even partitions and regular placements take constant memory, so a rank can hold the job it is part of.
class Job {
  public:
    Job() = default;
    Job(const Machine& machine, const Placement& placement);

    /// A regular tree, with names and group counts outermost first: {{"leaf", 64}, {"node", 16}, {"core", 16}}. Memory
    /// doesn't depend on the number of ranks. `cyclic` deals ranks to nodes one by one; otherwise rank and position are
    /// the same.
    static Job regular(const std::vector<std::pair<std::string, std::int32_t>>& levels, bool cyclic = false);
    /// p ranks of unknown placement; one level `node` with one rank each.
    static Job flat(std::int32_t ranks);
    /// From the group keys that ranks gathered: `key_of_rank[r][l]` is the group of rank r at level `names[l]`,
    /// outermost first. Groups of the first level come in order of their first rank, groups below by their key; equal
    /// keys in different parents are different groups. One level must be called `node`.
    static Job from_groups(const std::vector<std::string>& names,
                           const std::vector<std::vector<std::int32_t>>& key_of_rank);

    /// Reads what `to_json` wrote: the form in which rank 0 broadcasts the job.
    static Job from_json(const base::Json& json);
    /// Validates external input. Throws base::Error where it is no job: duplicate ranks, groups that cross each other.
    /// O(ranks).
    void check() const;
    base::Json to_json() const;

    std::int32_t size() const { return rank_at_.size(); }
    /// Beyond the ranks stand the service positions p, p+1, ... of the aggregators, with the same number as "rank".
    Rank rank_at(Position position) const {
        return {position.value < size() ? rank_at_[position.value] : position.value};
    }
    Position position_of(Rank rank) const { return {rank.value < size() ? position_of_[rank.value] : rank.value}; }
    /// Aggregators at switches that connect ranks of this job. One above the switch that connects all of them has the
    /// capacity of the slowest link on the way there.
    const std::vector<JobAggregator>& aggregators() const { return aggregators_; }
    /// Removes the aggregators, where they aren't in service.
    void drop_aggregators() { aggregators_.clear(); }
    void drop_aggregators(Aggregator::Kind kind) {
        std::erase_if(aggregators_, [&](const JobAggregator& one) { return one.kind == kind; });
    }
    /// The group of a rank's or service position at a level. Outside of all groups of the level: negative, another
    /// number for each position.
    std::int32_t group_at(std::size_t level, Position position) const;
    /// The outermost level that tells two positions apart; levels().size() where none does.
    std::size_t parting_level(Position a, Position b) const;
    const std::vector<JobLevel>& levels() const { return levels_; }
    /// Index of a level, or nothing when this job doesn't have it.
    std::optional<std::size_t> find_level(std::string_view name) const;
    /// Names of the machine's levels, outermost first, those too that tell no ranks of this job apart.
    const std::vector<std::string>& machine_levels() const { return machine_levels_; }
    /// The groups of a level of the machine. One outside of hosts that this job doesn't have holds all ranks in one
    /// group, one inside of them each rank alone. `switch` and `leaf` are the innermost level outside of hosts, `host`
    /// is `node`, where no level has that name. Nothing where the machine has no such level.
    std::optional<Partition> groups_named(std::string_view name) const;
    /// Positions on each host.
    const JobLevel& nodes() const;
    /// Costs of messages between ranks that no level of this job tells apart.
    const LevelCosts& inside() const { return inside_; }
    const MemoryCosts& memory() const { return memory_; }

    /// True when ranks follow each other in topology order.
    bool in_topology_order() const { return rank_at_.is_identity(); }

    /// The part of this job that a communicator holds: `ranks[i]` is the rank here of its rank i.
    Job restricted_to(const std::vector<Rank>& ranks) const;

    /// For a job whose costs were measured in place: those of a level, or of ranks that no level tells apart
    /// (`level` = levels().size()), and those of a rank's own memory.
    void set_costs(std::size_t level, const LevelCosts& costs);
    void set_memory(const MemoryCosts& costs) { memory_ = costs; }
    /// The capacity of all edges of a level.
    void set_capacity(std::size_t level, double bytes_per_s);

    /// These ranks in rank order, without topology: for topology-unaware algorithms.
    Job in_rank_order() const { return flat(size()); }

  private:
    void set_order(const std::vector<std::int32_t>& rank_at);
    void drop_empty_levels();
    void find_slowest_edges();

    Permutation rank_at_;
    Permutation position_of_;
    std::vector<JobLevel> levels_;
    std::vector<std::string> machine_levels_;
    std::vector<JobAggregator> aggregators_;
    LevelCosts inside_;
    MemoryCosts memory_;
};

}  // namespace palmette::topology
