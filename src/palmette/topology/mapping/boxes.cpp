#include "palmette/topology/mapping/boxes.hpp"

#include <algorithm>

namespace palmette::topology {
namespace {

using Cell = std::vector<std::int32_t>;

/// Cells of the region below a coordinate of one dimension.
std::int64_t cells_below(const Region& region, std::size_t dimension, std::int32_t coordinate) {
    std::int64_t total = 0;
    for (const Box& box : region) {
        const std::int64_t extent = box.high[dimension] - box.low[dimension];
        const std::int64_t below = std::clamp<std::int64_t>(coordinate - box.low[dimension], 0, extent);
        total += box.cells() / extent * below;
    }
    return total;
}

/// Moves what lies below the coordinate to `below`, and keeps the rest.
void split(Region& region, std::size_t dimension, std::int32_t coordinate, Region& below) {
    Region rest;
    for (Box& box : region) {
        if (box.high[dimension] <= coordinate) {
            below.push_back(std::move(box));
        } else if (box.low[dimension] >= coordinate) {
            rest.push_back(std::move(box));
        } else {
            below.push_back(box);
            below.back().high[dimension] = coordinate;
            rest.push_back(std::move(box));
            rest.back().low[dimension] = coordinate;
        }
    }
    region = std::move(rest);
}

/// Cells of the common face of two boxes that touch in `dimension`.
std::int64_t common_face(const Box& a, const Box& b, std::size_t dimension) {
    std::int64_t area = 1;
    for (std::size_t k = 0; k < a.low.size(); ++k) {
        if (k == dimension) continue;
        area *= std::max(0, std::min(a.high[k], b.high[k]) - std::max(a.low[k], b.low[k]));
    }
    return area;
}

}  // namespace

std::int64_t Grid::cells() const {
    std::int64_t total = 1;
    for (const std::int32_t extent : extents) total *= extent;
    return total;
}

std::int32_t Grid::index_of(const Cell& coordinates) const {
    std::int32_t index = 0;
    for (std::size_t k = 0; k < extents.size(); ++k) index = index * extents[k] + coordinates[k];
    return index;
}

Cell Grid::coordinates_of(std::int32_t index) const {
    Cell cell(extents.size());
    for (std::size_t k = extents.size(); k-- > 0; index /= extents[k]) cell[k] = index % extents[k];
    return cell;
}

std::int32_t Grid::neighbour(const Cell& cell, std::size_t dimension, std::int32_t step) const {
    Cell other = cell;
    std::int32_t& c = other[dimension];
    c += step;
    const std::int32_t extent = extents[dimension];
    if (c < 0 || c >= extent) {
        if (!periodic[dimension]) return -1;
        c = (c % extent + extent) % extent;
    }
    return index_of(other);
}

std::int64_t Box::cells() const {
    std::int64_t total = 1;
    for (std::size_t k = 0; k < low.size(); ++k) total *= high[k] - low[k];
    return total;
}

bool Box::holds(const Cell& cell) const {
    for (std::size_t k = 0; k < low.size(); ++k)
        if (cell[k] < low[k] || cell[k] >= high[k]) return false;
    return true;
}

std::int64_t cells_of(const Region& region) {
    std::int64_t total = 0;
    for (const Box& box : region) total += box.cells();
    return total;
}

bool holds(const Region& region, const Cell& cell) {
    return std::any_of(region.begin(), region.end(), [&](const Box& box) { return box.holds(cell); });
}

Cell cell_at(const Region& region, std::int64_t index) {
    for (const Box& box : region) {
        if (index >= box.cells()) {
            index -= box.cells();
            continue;
        }
        Cell cell(box.low.size());
        for (std::size_t k = cell.size(); k-- > 0;) {
            const std::int64_t extent = box.high[k] - box.low[k];
            cell[k] = box.low[k] + static_cast<std::int32_t>(index % extent);
            index /= extent;
        }
        return cell;
    }
    return {};
}

std::int64_t index_in(const Region& region, const Cell& cell) {
    std::int64_t before = 0;
    for (const Box& box : region) {
        if (!box.holds(cell)) {
            before += box.cells();
            continue;
        }
        std::int64_t index = 0;
        for (std::size_t k = 0; k < cell.size(); ++k) index = index * (box.high[k] - box.low[k]) + cell[k] - box.low[k];
        return before + index;
    }
    return -1;
}

std::pair<Region, Region> cut(const Region& region, std::int64_t cells, const std::vector<std::size_t>& order) {
    Region taken;
    Region rest = region;
    Region kept;
    for (const std::size_t dimension : order) {
        if (cells == 0) break;
        // The last coordinate up to which everything fits.
        std::int32_t low = INT32_MAX;
        std::int32_t high = INT32_MIN;
        for (const Box& box : rest) {
            low = std::min(low, box.low[dimension]);
            high = std::max(high, box.high[dimension]);
        }
        while (low < high) {
            const std::int32_t middle = low + (high - low + 1) / 2;
            if (cells_below(rest, dimension, middle) <= cells)
                low = middle;
            else
                high = middle - 1;
        }
        cells -= cells_below(rest, dimension, low);
        split(rest, dimension, low, taken);
        if (cells == 0) break;
        // A part of the next layer is still needed.
        Region layer;
        split(rest, dimension, low + 1, layer);
        kept.insert(kept.end(), rest.begin(), rest.end());
        rest = std::move(layer);
    }
    rest.insert(rest.end(), kept.begin(), kept.end());
    return {std::move(taken), std::move(rest)};
}

std::int64_t contacts(const Region& one, const Region& other, const Grid& grid) {
    std::int64_t total = 0;
    for (const Box& a : one)
        for (const Box& b : other)
            for (std::size_t k = 0; k < grid.dimensions(); ++k) {
                int faces = (a.high[k] == b.low[k]) + (b.high[k] == a.low[k]);
                if (grid.periodic[k] && grid.extents[k] > 1)
                    faces += (a.high[k] == grid.extents[k] && b.low[k] == 0) +
                             (b.high[k] == grid.extents[k] && a.low[k] == 0);
                if (faces > 0) total += faces * common_face(a, b, k);
            }
    return total;
}

}  // namespace palmette::topology
