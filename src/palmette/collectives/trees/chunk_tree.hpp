// One tree per group and chunk of a vector, with a different leader for each chunk.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "palmette/collectives/trees/tree_shape.hpp"
#include "palmette/plan/blocks.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::collectives {

using topology::Job;
using topology::Position;

/// How leaders of chunks are distributed over the nodes of a range of positions, and over the ranks of a node.
///  - runs: with fewer ranks than chunks a rank leads several consecutive ones; a node's ranks lead ascending runs
///    of chunks;
///  - turns: round-robin over the nodes, and over the ranks of each node.
enum class Spread : std::uint8_t { runs, turns };

/// Position that leads chunk `chunk` of `chunks` in a range of positions.
std::int64_t chunk_leader(const Job& job, plan::Interval range, std::int32_t chunk, std::int32_t chunks,
                          Spread spread = Spread::runs);

/// The tree over the positions of one group, rooted at the chunk's leader. Groups at each of `levels` have a leader of
/// their own, and the leaders in a group form a tree of the given shape. So each link below these levels carries the
/// chunk once in each direction. A subgroup that holds `preferred` is led by it, unless it holds the tree's root.
class ChunkTree {
  public:
    /// `levels`: indices into Job::levels(), outermost first, all inside of `group`. `job` must outlive the tree.
    ChunkTree(const Job& job, plan::Interval group, std::vector<std::size_t> levels, TreeShape shape,
              std::int32_t chunk, std::int32_t chunks, Spread spread, std::optional<Position> preferred = {})
        : job_(job),
          group_(group),
          levels_(std::move(levels)),
          shape_(shape),
          chunk_(chunk),
          chunks_(chunks),
          spread_(spread),
          preferred_(preferred) {}

    std::int64_t root() const { return chunk_leader(job_, group_, chunk_, chunks_, spread_); }

    struct Neighbours {
        std::optional<Position> parent;
        std::vector<Position> children;  ///< ascending
    };
    /// Neighbours of a position in the tree, by arithmetic on its own path.
    Neighbours of(Position position) const;

  private:
    /// The group around a position at depth 0 (the whole), 1 (the first of levels_), ...; single positions below the
    /// last.
    plan::Interval around(std::int64_t position, std::size_t depth) const;

    const Job& job_;
    plan::Interval group_;
    std::vector<std::size_t> levels_;
    TreeShape shape_;
    std::int32_t chunk_, chunks_;
    Spread spread_;
    std::optional<Position> preferred_;
};

}  // namespace palmette::collectives
