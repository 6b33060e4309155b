#include "palmette/topology/mapping/exchange_mapping.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "support/jobs.hpp"

namespace palmette::topology::exchange_mapping_tests {
namespace {

using test::job_on;
using testing::ElementsAre;
using testing::SizeIs;

Grid grid_of(std::vector<std::int32_t> extents) {
    const std::size_t dimensions = extents.size();
    return {std::move(extents), std::vector<bool>(dimensions, false)};
}

NodePositions in_order(const Job& job, std::int64_t cells) {
    NodePositions out;
    for (std::int32_t rank = 0; rank < cells; ++rank) out.push_back(job.position_of(Rank{rank}).value);
    return out;
}

TEST(ExchangeMapping, exchanges_pair_each_cell_with_all_others_of_its_line) {
    const auto exchanges = exchanges_of(grid_of({3, 1, 4}));
    ASSERT_THAT(exchanges, SizeIs(2));
    EXPECT_EQ(exchanges[0].axis, 0U);
    EXPECT_EQ(exchanges[1].axis, 2U);
    EXPECT_THAT(exchanges[0].edges, SizeIs(4 * 3));  // 4 lines of 3 pairs
    EXPECT_THAT(exchanges[1].edges, SizeIs(3 * 6));
    const auto sent = [](const GridExchange& exchange) {
        return std::accumulate(exchange.edges.begin(), exchange.edges.end(), 0.0,
                               [](double sum, const GraphEdge& edge) { return sum + edge.bytes; });
    };
    // Each of 12 cells keeps the part of its own data that is for itself.
    EXPECT_DOUBLE_EQ(sent(exchanges[0]), 12 * (1 - 1 / 3.0));
    EXPECT_DOUBLE_EQ(sent(exchanges[1]), 12 * (1 - 1 / 4.0));
}

TEST(ExchangeMapping, axes_of_one_cell_dont_count_as_orders) {
    EXPECT_THAT(axis_orders(grid_of({4, 1, 2})), ElementsAre(ElementsAre(1, 0, 2), ElementsAre(1, 2, 0)));
    EXPECT_THAT(axis_orders(grid_of({2, 2, 2, 2, 2})), SizeIs(24));
    EXPECT_THAT(axis_orders(grid_of({1})), SizeIs(1));
}

TEST(ExchangeMapping, cells_and_places_are_each_others_inverse) {
    for (const Grid& grid : {grid_of({5}), grid_of({4, 3}), grid_of({2, 1, 5}), grid_of({3, 2, 4})})
        for (const auto& order : axis_orders(grid))
            for (std::int32_t cell = 0; cell < grid.cells(); ++cell)
                EXPECT_EQ(cell_by(grid, order, index_by(grid, order, cell)), cell);
}

TEST(ExchangeMapping, every_mapping_places_each_cell_once) {
    for (const auto& machine : test::machines())
        for (const auto& placement : test::placements())
            for (const Grid& grid : {grid_of({32}), grid_of({8, 4}), grid_of({2, 4, 4}), grid_of({5, 1, 5})}) {
                const Job job = job_on(machine, placement, 33);
                const auto exchanges = exchanges_of(grid);
                const auto mappings = exchange_mappings(job, grid, exchanges);
                for (const NodePositions& positions : mappings) {
                    const std::set<std::int32_t> seen(positions.begin(), positions.end());
                    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), grid.cells());
                    EXPECT_EQ(*seen.rbegin(), grid.cells() - 1);
                }
            }
}

TEST(ExchangeMapping, lines_of_a_grid_that_fit_into_hosts_stay_there) {
    const Job job = job_on("8node:4core", "random:1");
    for (const Grid& grid : {grid_of({8, 4}), grid_of({4, 8})}) {
        const auto exchanges = exchanges_of(grid);
        MappedTraffic least = traffic_of(job, exchanges, in_order(job, grid.cells()));
        const MappedTraffic before = least;
        for (const NodePositions& positions : exchange_mappings(job, grid, exchanges))
            if (const MappedTraffic traffic = traffic_of(job, exchanges, positions); is_better(traffic, least))
                least = traffic;
        EXPECT_LT(least.busiest, before.busiest);
        // Only lines of 8 leave hosts of 4: each rank sends 7/8 of its data, in both directions.
        EXPECT_NEAR(least.busiest, 4 * 7 / 8.0 * 2, 1e-9);
    }
}

TEST(ExchangeMapping, a_square_grid_on_three_uneven_leaves_crosses_a_third_less_than_as_placed) {
    const Job job = job_on("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core", "random:1");
    const Grid grid = grid_of({4, 4});
    const auto exchanges = exchanges_of(grid);
    const double before = traffic_of(job, exchanges, in_order(job, 16)).busiest;
    double least = before;
    for (const NodePositions& positions : exchange_mappings(job, grid, exchanges))
        least = std::min(least, traffic_of(job, exchanges, positions).busiest);
    EXPECT_NEAR(before / least, 26.0 / 18, 1e-9);
}

}  // namespace
}  // namespace palmette::topology::exchange_mapping_tests
