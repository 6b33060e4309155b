#include "palmette/topology/mapping/grid_mapping.hpp"

#include <gmock/gmock.h>

#include <set>

#include "palmette/topology/mapping/graph_mapping.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::topology::grid_mapping_tests {
namespace {

using test::error_of;
using test::job_on;
using testing::HasSubstr;

Grid grid_of(std::vector<std::int32_t> extents, bool periodic = false) {
    const std::size_t dimensions = extents.size();
    return {std::move(extents), std::vector<bool>(dimensions, periodic)};
}

Graph stencil(const Grid& grid) {
    std::vector<GraphEdge> edges;
    for (std::int32_t cell = 0; cell < grid.cells(); ++cell)
        for (std::size_t k = 0; k < grid.dimensions(); ++k)
            for (const std::int32_t step : {-1, 1})
                if (const std::int32_t other = grid.neighbour(grid.coordinates_of(cell), k, step); other >= 0)
                    edges.push_back({cell, other, 1});
    return {static_cast<std::int32_t>(grid.cells()), edges};
}

NodePositions positions(const GridMapping& mapping) {
    NodePositions out;
    for (std::int32_t cell = 0; cell < mapping.grid().cells(); ++cell) out.push_back(mapping.position_of(cell).value);
    return out;
}

TEST(GridMapping, cells_and_positions_are_each_others_inverse_on_any_tree) {
    const std::vector<Grid> grids{
        grid_of({1}),          grid_of({33}),      grid_of({8, 4}),          grid_of({4, 4}, true),
        grid_of({5, 3}),       grid_of({3, 3, 3}), grid_of({2, 2, 2, 2, 2}), grid_of({1, 7, 1, 3}),
        grid_of({11, 3}, true)};
    for (const auto& machine : test::machines())
        for (const auto& placement : test::placements())
            for (const Grid& grid : grids) {
                const Job job = job_on(machine, placement, 33);
                const GridMapping mapping(job, grid);
                std::set<std::int32_t> seen;
                for (std::int32_t position = 0; position < job.size(); ++position) {
                    const std::int32_t cell = mapping.cell_at(Position{position});
                    if (position >= grid.cells()) {
                        EXPECT_EQ(cell, -1);
                        continue;
                    }
                    EXPECT_TRUE(seen.insert(cell).second);
                    EXPECT_EQ(mapping.position_of(cell).value, position);
                }
                EXPECT_EQ(static_cast<std::int64_t>(seen.size()), grid.cells());
            }
}

TEST(GridMapping, hosts_get_blocks_with_the_least_surface) {
    const Job job = job_on("16node:16core", "cyclic");
    const Grid grid = grid_of({16, 16});
    const GridMapping mapping(job, grid);
    // 4 x 4 cells a host: 24 borders of 4 cells between hosts, both ways and counted at both ends.
    EXPECT_EQ(traffic_of(job, stencil(grid), positions(mapping)).hop_bytes, 24 * 4 * 2 * 2);
}

TEST(GridMapping, leaves_of_uneven_size_get_whole_columns_where_those_fit) {
    const Job job = job_on("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core", "random:1");
    const GridMapping mapping(job, grid_of({8, 2}));
    const auto& leaves = job.levels().front().groups;
    for (std::int32_t column = 0; column < 8; ++column)
        EXPECT_EQ(leaves.group_of(mapping.position_of(2 * column).value),
                  leaves.group_of(mapping.position_of(2 * column + 1).value));
}

TEST(GridMapping, a_look_on_a_million_ranks_costs_no_table) {
    const Job job = Job::regular({{"pod", 16}, {"leaf", 32}, {"node", 32}, {"core", 64}}, true);
    const GridMapping mapping(job, grid_of({1024, 1024}));
    for (const std::int32_t position : {0, 1, 4711, 524'288, 1'048'575})
        EXPECT_EQ(mapping.position_of(mapping.cell_at(Position{position})).value, position);
    // Blocks of 8 x 8 on a host.
    const std::int32_t corner = mapping.cell_at(Position{0});
    EXPECT_EQ(mapping.position_of(corner + 7 * 1024 + 7).value / 64, 0);
}

TEST(GridMapping, a_grid_that_does_not_fit_is_refused) {
    const Job job = job_on("2node:2core");
    EXPECT_THAT(error_of([&] { GridMapping(job, grid_of({5})); }), HasSubstr("more cells than the 4 ranks"));
    EXPECT_THAT(error_of([&] { GridMapping(job, grid_of({2, 0})); }), HasSubstr("no extent of 0"));
    EXPECT_THAT(error_of([&] { GridMapping(job, grid_of({})); }), HasSubstr("at least one dimension"));
}

}  // namespace
}  // namespace palmette::topology::grid_mapping_tests
