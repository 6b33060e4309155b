// Which cell of a Cartesian grid each position of a job gets.
#pragma once

#include <cstdint>

#include "palmette/topology/job.hpp"
#include "palmette/topology/mapping/boxes.hpp"

namespace palmette::topology {

/// Recursive bisection of the grid along the tree: the groups of a level are halved, and the grid is cut in two parts
/// of just as many cells with as few pairs of neighbours between them as a cut along an axis can have; where sizes
/// don't divide, the cut has a step. Positions past the last cell get none. A look takes as many cuts as lie on one way
/// down the tree and no memory that grows with the job, so that a rank can find its own cell and those of its
/// neighbours. The same on all ranks.
class GridMapping {
  public:
    /// `job` must live as long and have at least as many ranks as the grid has cells.
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
