// Groups of one level with a leader per chunk of a vector: common part of the hierarchical reductions and bcast.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "palmette/collectives/exchanges/reduce_exchange.hpp"
#include "palmette/collectives/trees/chunk_tree.hpp"

namespace palmette::collectives {

/// The keys level=, leaders= and inside=, resolved for one job.
class LeaderGroups {
  public:
    /// Throws base::Error on a bad value. shared(), cell() and chunks_led() are for Spread::runs.
    LeaderGroups(const Job& job, const Spec& spec, Spread spread = Spread::runs);

    const topology::Partition& groups() const { return job_.levels()[level_].groups; }
    std::int32_t count() const { return groups().count(); }
    std::int32_t group_of(Position position) const { return groups().group_of(position.value); }
    plan::Interval group(std::int32_t g) const { return {groups().first(g), groups().size_of(g)}; }
    /// Chunks that the vector is cut in, one per leader.
    std::int32_t chunks() const { return chunks_; }
    /// inside=shared, and the request allows it.
    bool shared(const Request& request) const { return shared_ && request.shared_memory; }
    TreeShape inside() const { return inside_; }
    const std::string& level_name() const { return job_.levels()[level_].name; }

    /// Position that leads a chunk in a group.
    std::int64_t leader(std::int32_t g, std::int32_t chunk) const {
        return chunk_leader(job_, group(g), chunk, chunks_, spread_);
    }
    /// The tree of a chunk in a group; with `shared` all ranks of a node are adjacent in it. `preferred` leads the
    /// subgroups that contain it but not the root.
    ChunkTree tree(std::int32_t g, std::int32_t chunk, bool shared, std::optional<Position> preferred = {}) const;
    /// Levels above the groups at which a ring between them closes, as partitions of the groups.
    std::vector<topology::Partition> outer_levels() const;

    /// The ranks of a group that share a node with `position`.
    plan::Interval cell(Position position) const;
    /// The chunks that member i of a cell of `size` leads.
    plan::Interval chunks_led(std::int64_t i, std::int64_t size) const;

  private:
    const Job& job_;
    std::size_t level_;
    std::int32_t chunks_;
    Spread spread_;
    bool shared_;
    TreeShape inside_;
};

}  // namespace palmette::collectives
