#include "palmette/compose/formulas.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace palmette::compose {
namespace {

TEST(BestDepth, is_that_of_the_least_time_among_all) {
    for (const std::int32_t n : {3, 4, 8, 33, 100})
        for (const double bytes : {100.0, 1e4, 1e6, 3.3e7})
            for (const LinkCost link : {LinkCost{1e-6, 1e10}, LinkCost{5e-5, 1.25e7}, LinkCost{1e-3, 1e9}}) {
                std::int32_t best = 1;
                for (std::int32_t k = 1; k <= 4096; ++k)
                    if (ring_s(n, bytes, k, link) < ring_s(n, bytes, best, link)) best = k;
                EXPECT_EQ(best_depth(n, bytes, link, 4096), best) << n << " ranks, " << bytes << " bytes";
                const double formula = std::sqrt(bytes * (n - 2) / (link.bytes_per_s * link.latency_s));
                if (formula >= 1 && formula <= 4096) {
                    EXPECT_LT(std::abs(best_depth(n, bytes, link, 4096) - formula), 1);
                }
            }
}

TEST(BestDepth, is_1_where_nothing_follows_and_the_most_where_starting_costs_nothing) {
    EXPECT_EQ(best_depth(2, 1e6, {1e-6, 1e9}), 1);
    EXPECT_EQ(best_depth(8, 0, {1e-6, 1e9}), 1);
    EXPECT_EQ(best_depth(8, 1e6, {0, 1e9}, 64), 64);
    EXPECT_EQ(best_depth(8, 1e12, {1e-6, 1e9}, 64), 64);
}

TEST(Formulas, order_shapes_as_sizes_say) {
    const LinkCost link{1e-5, 1e9};
    // Small: a tree. Large: a deep pipeline, near to the vector's own time.
    EXPECT_LT(tree_s(16, 8, 2, link), ring_s(16, 8, 1, link));
    EXPECT_LT(tree_s(16, 8, 2, link), scatter_allgather_s(16, 8, link));
    const double bytes = 1e8;
    const double ring = ring_s(16, bytes, best_depth(16, bytes, link), link);
    EXPECT_LT(ring, tree_s(16, bytes, 2, link));
    EXPECT_LT(ring, scatter_allgather_s(16, bytes, link));
    EXPECT_LT(ring, 1.1 * bytes / link.bytes_per_s);
    EXPECT_GT(direct_s(16, bytes, link), 10 * ring);
}

}  // namespace
}  // namespace palmette::compose
