#include "palmette/topology/mapping/exchange_mapping.hpp"

#include <algorithm>

#include "palmette/topology/index.hpp"
#include "palmette/topology/mapping/link_loads.hpp"

namespace palmette::topology {
namespace {

constexpr std::size_t most_orders = 24;

/// Edges that the local search may visit: some tens of milliseconds.
constexpr std::int64_t most_visited = 2'000'000;

}  // namespace

std::vector<GridExchange> exchanges_of(const Grid& grid) {
    std::vector<GridExchange> out;
    for (std::size_t axis = 0; axis < grid.dimensions(); ++axis) {
        const std::int32_t extent = grid.extents[axis];
        if (extent < 2) continue;
        GridExchange& exchange = out.emplace_back(GridExchange{axis, {}});
        for (std::int32_t cell = 0; cell < grid.cells(); ++cell) {
            std::vector<std::int32_t> other = grid.coordinates_of(cell);
            for (std::int32_t c = other[axis] + 1; c < extent; ++c) {
                other[axis] = c;
                exchange.edges.push_back({cell, grid.index_of(other), 2.0 / extent});
            }
        }
    }
    return out;
}

MappedTraffic traffic_of(const Job& job, const std::vector<GridExchange>& exchanges, const NodePositions& positions) {
    MappedTraffic out;
    for (const GridExchange& exchange : exchanges) {
        LinkLoads loads(job);
        for (const GraphEdge& edge : exchange.edges)
            loads.add(positions[at(edge.from)], positions[at(edge.to)], edge.bytes);
        out.busiest += loads.busiest();
        out.hop_bytes += loads.hop_bytes();
    }
    return out;
}

std::vector<std::vector<std::size_t>> axis_orders(const Grid& grid) {
    std::vector<std::size_t> axes;
    std::vector<std::size_t> flat;
    for (std::size_t axis = 0; axis < grid.dimensions(); ++axis) (grid.extents[axis] > 1 ? axes : flat).push_back(axis);
    std::vector<std::vector<std::size_t>> out;
    do {
        out.push_back(flat);
        out.back().insert(out.back().end(), axes.begin(), axes.end());
    } while (out.size() < most_orders && std::next_permutation(axes.begin(), axes.end()));
    return out;
}

std::int32_t index_by(const Grid& grid, const std::vector<std::size_t>& order, std::int32_t cell) {
    const std::vector<std::int32_t> coordinates = grid.coordinates_of(cell);
    std::int32_t index = 0;
    for (const std::size_t axis : order) index = index * grid.extents[axis] + coordinates[axis];
    return index;
}

std::int32_t cell_by(const Grid& grid, const std::vector<std::size_t>& order, std::int32_t index) {
    std::vector<std::int32_t> coordinates(grid.dimensions(), 0);
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
        coordinates[*axis] = index % grid.extents[*axis];
        index /= grid.extents[*axis];
    }
    return grid.index_of(coordinates);
}

std::vector<NodePositions> exchange_mappings(const Job& job, const Grid& grid,
                                             const std::vector<GridExchange>& exchanges) {
    std::vector<NodePositions> out;
    for (const auto& order : axis_orders(grid)) {
        NodePositions& positions = out.emplace_back();
        for (std::int32_t cell = 0; cell < grid.cells(); ++cell) positions.push_back(index_by(grid, order, cell));
    }
    NodePositions refined;
    MappedTraffic least;
    for (const NodePositions& positions : out) {
        const MappedTraffic traffic = traffic_of(job, exchanges, positions);
        if (!refined.empty() && !is_better(traffic, least)) continue;
        refined = positions;
        least = traffic;
    }
    std::vector<GraphEdge> all;
    for (const GridExchange& exchange : exchanges) all.insert(all.end(), exchange.edges.begin(), exchange.edges.end());
    const std::int64_t edges_of_cell = 1 + 2 * static_cast<std::int64_t>(all.size()) / grid.cells();
    refine(job, Graph(static_cast<std::int32_t>(grid.cells()), all), refined, most_visited / edges_of_cell);
    out.push_back(std::move(refined));
    return out;
}

}  // namespace palmette::topology
