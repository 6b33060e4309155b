// Maps the positions of a job to the cells of a Cartesian grid.
#pragma once

#include <cstdint>

#include "palmette/topology/job.hpp"
#include "palmette/topology/mapping/boxes.hpp"

namespace palmette::topology {

/// Recursive bisection of the grid along the tree: the groups of a level are halved, and the grid is cut in two parts
/// of the same sizes, with as few pairs of neighbours across the cut as an axis-aligned cut can have; where sizes don't
/// divide, the cut has a step. Positions past the last cell get none. A query takes one cut per bisection on the path
/// down the tree and memory independent of the job size, so that each rank can compute its own cell and those of its
/// neighbours. Deterministic: the same on all ranks.
class GridMapping {
  public:
    /// `job` must outlive it and have at least as many ranks as the grid has cells.
    GridMapping(const Job& job, Grid grid);

    const Grid& grid() const { return grid_; }
    /// Number of the cell, -1 for positions that get none.
    std::int32_t cell_at(Position position) const;
    Position position_of(std::int32_t cell) const;

  private:
    template <class TakesFirst, class Finish>
    auto descend(TakesFirst takes_first, Finish finish) const;

    const Job& job_;
    Grid grid_;
};

}  // namespace palmette::topology
