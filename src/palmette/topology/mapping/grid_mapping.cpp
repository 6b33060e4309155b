#include "palmette/topology/mapping/grid_mapping.hpp"

#include <algorithm>
#include <numeric>

#include "palmette/base/error.hpp"

namespace palmette::topology {
namespace {

struct Halves {
    Region first, second;
};

/// The cut with the fewest contacts; tries the longest extents first, and from both ends.
Halves halve(const Region& region, std::int64_t cells, const Grid& grid) {
    std::vector<std::int32_t> extent(grid.dimensions());
    for (std::size_t k = 0; k < extent.size(); ++k) {
        std::int32_t low = INT32_MAX;
        std::int32_t high = INT32_MIN;
        for (const Box& box : region) {
            low = std::min(low, box.low[k]);
            high = std::max(high, box.high[k]);
        }
        extent[k] = high - low;
    }
    std::vector<std::size_t> by_extent(extent.size());
    std::iota(by_extent.begin(), by_extent.end(), 0U);
    std::stable_sort(by_extent.begin(), by_extent.end(), [&](auto a, auto b) { return extent[a] > extent[b]; });
    Halves best;
    std::int64_t fewest = -1;
    for (std::size_t main = 0; main < by_extent.size(); ++main) {
        if (extent[by_extent[main]] < 2 && main > 0) continue;
        std::vector<std::size_t> order = by_extent;
        std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(main),
                    order.begin() + static_cast<std::ptrdiff_t>(main) + 1);
        for (const bool from_low : {true, false}) {
            auto [low, high] = cut(region, from_low ? cells : cells_of(region) - cells, order);
            const std::int64_t between = contacts(low, high, grid);
            if (fewest >= 0 && between >= fewest) continue;
            fewest = between;
            best = from_low ? Halves{std::move(low), std::move(high)} : Halves{std::move(high), std::move(low)};
        }
    }
    return best;
}

}  // namespace

GridMapping::GridMapping(const Job& job, Grid grid) : job_(job), grid_(std::move(grid)) {
    if (grid_.extents.empty() || grid_.extents.size() != grid_.periodic.size())
        base::fail("a grid needs at least one dimension, and a periodicity for each");
    for (const std::int32_t extent : grid_.extents)
        if (extent < 1) base::fail("a grid has no extent of ", extent, "; each is 1 or more");
    std::int64_t cells = 1;
    for (const std::int32_t extent : grid_.extents) {
        cells *= extent;
        if (cells > job.size())
            base::fail("the grid has more cells than the ", job.size(), " ranks; make it smaller or add ranks");
    }
}

/// Halves positions and cells together until one group of the innermost level is left. `takes_first` chooses the half
/// from (the first position of the second half, the cells of the first half); `finish` gets the first position that is
/// left and its cells.
template <class TakesFirst, class Finish>
auto GridMapping::descend(TakesFirst takes_first, Finish finish) const {
    Region region{{std::vector<std::int32_t>(grid_.dimensions(), 0), grid_.extents}};
    std::int32_t first = 0;
    auto end = static_cast<std::int32_t>(grid_.cells());
    for (const JobLevel& level : job_.levels())
        for (;;) {
            const std::int32_t low = level.groups.group_of(first);
            const std::int32_t high = level.groups.group_of(end - 1);
            if (low == high) break;
            // The group boundary nearest to the middle.
            const std::int32_t middle = first + (end - first) / 2;
            const std::int32_t group = std::clamp(level.groups.group_of(middle), low, high);
            const std::int32_t below = std::max(group, low + 1);
            const std::int32_t above = std::min(group + 1, high);
            const std::int32_t border =
                middle - level.groups.first(below) <= level.groups.first(above) - middle || below == above
                    ? level.groups.first(below)
                    : level.groups.first(above);
            Halves halves = halve(region, border - first, grid_);
            if (takes_first(border, halves.first)) {
                end = border;
                region = std::move(halves.first);
            } else {
                first = border;
                region = std::move(halves.second);
            }
        }
    return finish(first, region);
}

std::int32_t GridMapping::cell_at(Position position) const {
    if (position.value >= grid_.cells()) return -1;
    return descend([&](std::int32_t border, const Region&) { return position.value < border; },
                   [&](std::int32_t first, const Region& region) {
                       return grid_.index_of(topology::cell_at(region, position.value - first));
                   });
}

Position GridMapping::position_of(std::int32_t cell) const {
    const std::vector<std::int32_t> coordinates = grid_.coordinates_of(cell);
    return descend([&](std::int32_t, const Region& first) { return holds(first, coordinates); },
                   [&](std::int32_t first, const Region& region) {
                       return Position{first + static_cast<std::int32_t>(index_in(region, coordinates))};
                   });
}

}  // namespace palmette::topology
