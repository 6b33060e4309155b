// Maps a Cartesian grid for all-to-alls along its lines: the transposes of an FFT on a pencil or slab decomposition.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/topology/job.hpp"
#include "palmette/topology/mapping/boxes.hpp"
#include "palmette/topology/mapping/graph_mapping.hpp"

namespace palmette::topology {

/// One exchange is an all-to-all within each line of cells along one axis. Every cell sends as much in each exchange,
/// an equal part to each cell of its line, so that a pair of cells has the weight 1 / cells of a line.
struct GridExchange {
    std::size_t axis;
    std::vector<GraphEdge> edges;  ///< each pair once, both directions
};

/// The exchanges along all axes with more than one cell. O(cells times the sum of the extents).
std::vector<GridExchange> exchanges_of(const Grid& grid);

/// Load of the links by exchanges that follow each other: the sums over axes of the busiest link's time and of hop
/// bytes.
MappedTraffic traffic_of(const Job& job, const std::vector<GridExchange>& exchanges, const NodePositions& positions);

/// Orders of the axes, slowest first, in which cells may take the positions: all permutations of the axes with more
/// than one cell, at most 24 of them.
std::vector<std::vector<std::size_t>> axis_orders(const Grid& grid);

/// The place of a cell among all cells where `order[0]` is the slowest axis, and back. O(axes).
std::int32_t index_by(const Grid& grid, const std::vector<std::size_t>& order, std::int32_t cell);
std::int32_t cell_by(const Grid& grid, const std::vector<std::size_t>& order, std::int32_t index);

/// Mappings of a grid to try, positions by cell: the cells line by line in each order of the axes, and the best of
/// these after a local search. At most as many cells as the job has ranks.
std::vector<NodePositions> exchange_mappings(const Job& job, const Grid& grid,
                                             const std::vector<GridExchange>& exchanges);

}  // namespace palmette::topology
