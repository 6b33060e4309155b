#include "palmette/select/pace.hpp"

#include <gtest/gtest.h>

namespace palmette::select {
namespace {

TEST(Pace, what_pairs_cost_stays_below_the_share_of_the_time_of_all_calls) {
    for (const double share : {0.001, 0.01, 0.5})
        for (const double cost_s : {0.0, 1e-6, 3e-4, 2.0})
            for (const double ours_s : {1e-6, 5e-4, 0.3})
                for (const Verdict verdict : {Verdict::open, Verdict::faster, Verdict::same}) {
                    // Pairs as often as they may be, after the first.
                    double calls_s = 0, spent_s = 0;
                    for (int pair = 0; pair < 20; ++pair) {
                        calls_s += static_cast<double>(calls_to_next_pair(cost_s, ours_s, share, verdict)) * ours_s;
                        spent_s += cost_s;
                        EXPECT_LE(spent_s, share * calls_s * (verdict == Verdict::open ? 1 : 0.1) + 1e-12)
                            << share << ' ' << cost_s << ' ' << ours_s;
                    }
                }
}

TEST(Pace, pairs_are_no_rarer_than_that_takes) {
    EXPECT_NEAR(static_cast<double>(calls_to_next_pair(1e-3, 1e-3, 0.01, Verdict::open)), 101, 1);
    EXPECT_NEAR(static_cast<double>(calls_to_next_pair(1e-3, 1e-3, 0.01, Verdict::faster)), 1001, 1);
    EXPECT_EQ(calls_to_next_pair(0, 1e-3, 0.01, Verdict::open), 1);
}

TEST(Pace, a_pair_that_cost_beyond_all_measure_is_the_last_one) {
    EXPECT_GT(calls_to_next_pair(1e9, 1e-9, 1e-3, Verdict::open), std::int64_t{1} << 39);
}

}  // namespace
}  // namespace palmette::select
