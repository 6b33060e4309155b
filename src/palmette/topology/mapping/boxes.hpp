// Regions of a Cartesian grid, represented as lists of disjoint boxes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace palmette::topology {

/// What a grid's order is good for.
enum class GridPurpose : std::uint8_t {
    halo,     ///< each cell exchanges with its neighbours
    exchange  ///< all-to-alls within lines of cells, as in the transposes of an FFT
};

/// A grid of cells, numbered in row-major order.
struct Grid {
    std::vector<std::int32_t> extents;  ///< each 1 or more
    std::vector<bool> periodic;         ///< same length

    std::size_t dimensions() const { return extents.size(); }
    std::int64_t cells() const;
    std::int32_t index_of(const std::vector<std::int32_t>& coordinates) const;
    std::vector<std::int32_t> coordinates_of(std::int32_t index) const;
    /// The cell `step` further along a dimension, or -1 past an edge that isn't periodic.
    std::int32_t neighbour(const std::vector<std::int32_t>& cell, std::size_t dimension, std::int32_t step) const;
};

/// Cells with low[k] <= c[k] < high[k].
struct Box {
    std::vector<std::int32_t> low, high;
    std::int64_t cells() const;
    bool holds(const std::vector<std::int32_t>& cell) const;
};

/// Boxes that share no cell.
using Region = std::vector<Box>;

std::int64_t cells_of(const Region& region);
bool holds(const Region& region, const std::vector<std::int32_t>& cell);
/// The cell of that number in the order of the boxes, and back.
std::vector<std::int32_t> cell_at(const Region& region, std::int64_t index);
std::int64_t index_in(const Region& region, const std::vector<std::int32_t>& cell);

/// The first `cells` cells in the order in which `order[0]` is the slowest dimension, and the rest. Adds at most one
/// box per dimension.
std::pair<Region, Region> cut(const Region& region, std::int64_t cells, const std::vector<std::size_t>& order);

/// Pairs of neighbouring cells, one in each region.
std::int64_t contacts(const Region& one, const Region& other, const Grid& grid);

}  // namespace palmette::topology
