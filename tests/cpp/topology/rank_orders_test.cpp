#include "palmette/topology/mapping/rank_orders.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "palmette/topology/mapping/bottleneck_ring.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::topology {
namespace {

using test::error_of;
using test::job_on;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

/// Ping-pong seconds of four processes.
Distances four() {
    return {4,
            {0, 0.011434, 0.017015, 0.026188, 0.011434, 0, 0.245841, 0.016823, 0.017015, 0.245841, 0.2024, 0.028277,
             0.026188, 0.016823, 0.028277, 0}};
}

/// Points on a line in the given order; a ring over them has to come back.
Distances on_a_line(const std::vector<double>& points) {
    std::vector<double> values;
    for (const double a : points)
        for (const double b : points) values.push_back(std::abs(a - b));
    return {static_cast<std::int32_t>(points.size()), values};
}

std::vector<std::int32_t> all_of(std::int32_t size) {
    std::vector<std::int32_t> out;
    for (std::int32_t i = 0; i < size; ++i) out.push_back(i);
    return out;
}

TEST(RankOrders, ring_takes_the_nearest_free_place_next) {
    EXPECT_THAT(ring_order(*free_places(four())), ElementsAre(0, 1, 3, 2));
}

TEST(RankOrders, equally_near_places_come_by_number) {
    EXPECT_THAT(ring_order(*free_places(Distances(3, std::vector<double>(9, 1.0)))), ElementsAre(0, 1, 2));
}

TEST(RankOrders, the_worse_way_counts) {
    // From 0 to 1 is short, back it is long.
    EXPECT_THAT(ring_order(*free_places(Distances(3, {0, 1, 2, 9, 0, 2, 2, 2, 0}))), ElementsAre(0, 2, 1));
}

TEST(RankOrders, a_matrix_that_is_none_is_refused_with_its_place) {
    EXPECT_THAT(error_of([] { Distances(2, {0, 1, -1, 0}); }), HasSubstr("row 2, column 1"));
    EXPECT_THAT(error_of([] { Distances(2, {0, 1, 2}); }), HasSubstr("needs 4 numbers, not 3"));
}

TEST(RankOrders, every_heuristic_gives_a_permutation_that_begins_with_0) {
    for (const auto& machine : test::machines())
        for (const auto& placement : test::placements())
            for (const std::int32_t ranks : {1, 2, 3, 7, 8, 20, 33}) {
                const Job job = job_on(machine, placement, ranks);
                for (auto* order_for :
                     {&ring_order, &recursive_doubling_order, &binomial_gather_order, &binomial_bcast_order}) {
                    const RankOrder order = order_for(*free_places(job));
                    EXPECT_EQ(order.front(), 0);
                    EXPECT_THAT(order, UnorderedElementsAreArray(all_of(ranks)));
                }
            }
}

TEST(RankOrders, a_ring_on_a_tree_leaves_each_group_once) {
    const Job job = job_on("3leaf:3+3+2node:2core", "random:1");
    const RankOrder order = ring_order(*free_places(job));
    for (const JobLevel& level : job.levels()) {
        std::vector<std::int32_t> left(static_cast<std::size_t>(level.groups.count()), 0);
        for (std::size_t r = 0; r < order.size(); ++r) {
            const auto group = [&](std::size_t rank) {
                return level.groups.group_of(job.position_of(Rank{order[rank % order.size()]}).value);
            };
            if (group(r) != group(r + 1)) ++left[static_cast<std::size_t>(group(r))];
        }
        EXPECT_THAT(left, testing::Each(1)) << level.name;
    }
}

TEST(RankOrders, recursive_doublings_heaviest_stage_stays_inside_of_hosts) {
    const Job job = job_on("8node:2core", "cyclic");
    const RankOrder order = recursive_doubling_order(*free_places(job));
    const auto host = [&](std::int32_t rank) {
        return job.nodes().groups.group_of(job.position_of(Rank{order[static_cast<std::size_t>(rank)]}).value);
    };
    for (std::int32_t rank = 0; rank < 8; ++rank) EXPECT_EQ(host(rank), host(rank ^ 8));
}

TEST(RankOrders, a_gathers_heaviest_edge_is_the_shortest) {
    const Job job = job_on("4node:2core", "cyclic");
    const RankOrder order = binomial_gather_order(*free_places(job));
    // Rank 4 brings half of the data.
    EXPECT_EQ(job.nodes().groups.group_of(job.position_of(Rank{order[4]}).value),
              job.nodes().groups.group_of(job.position_of(Rank{order[0]}).value));
}

TEST(BottleneckRing, is_exact_on_small_matrices) {
    // Every other point there, the rest on the way back: no ring over a line does better than two steps of one.
    const BottleneckRing ring = bottleneck_ring(on_a_line({0, 5, 1, 4, 2, 3}));
    EXPECT_EQ(ring.slowest, 2);
    EXPECT_TRUE(ring.proven());
    EXPECT_THAT(ring.order, UnorderedElementsAreArray(all_of(6)));
}

TEST(BottleneckRing, is_exact_against_all_permutations) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        std::uint32_t state = seed;
        std::vector<double> values;
        for (int i = 0; i < 49; ++i) values.push_back((state = state * 1664525U + 1013904223U) >> 20);
        const Distances distances(7, values);
        RankOrder order = all_of(7);
        double best = INFINITY;
        do best = std::min(best, slowest_edge(distances, order));
        while (std::next_permutation(order.begin() + 1, order.end()));
        const BottleneckRing ring = bottleneck_ring(distances);
        EXPECT_EQ(ring.slowest, best);
        EXPECT_EQ(slowest_edge(distances, ring.order), best);
        EXPECT_TRUE(ring.proven());
    }
}

TEST(BottleneckRing, keeps_to_its_budget_and_tells_the_gap_on_large_matrices) {
    std::vector<double> points;
    std::uint32_t state = 1;
    for (int i = 0; i < 300; ++i) points.push_back((state = state * 1664525U + 1013904223U) >> 16);
    const Distances distances = on_a_line(points);
    const BottleneckRing ring = bottleneck_ring(distances, 20'000'000);
    EXPECT_THAT(ring.order, UnorderedElementsAreArray(all_of(300)));
    EXPECT_EQ(slowest_edge(distances, ring.order), ring.slowest);
    EXPECT_LE(ring.slowest, slowest_edge(distances, ring_order(*free_places(distances))));
    EXPECT_LE(ring.bound, ring.slowest);
    EXPECT_GT(ring.bound, 0);
}

TEST(BottleneckRing, knows_the_smallest_rings) {
    EXPECT_THAT(bottleneck_ring(Distances(1, {0})).order, ElementsAre(0));
    EXPECT_EQ(bottleneck_ring(Distances(2, {0, 3, 3, 0})).slowest, 3);
    EXPECT_EQ(bottleneck_ring(Distances(3, {0, 3, 1, 3, 0, 2, 1, 2, 0})).slowest, 3);
}

}  // namespace
}  // namespace palmette::topology
