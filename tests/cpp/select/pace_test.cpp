#include "palmette/select/pace.hpp"

#include <gtest/gtest.h>

namespace palmette::select {
namespace {

/// What a program pays for comparing in so many calls, in calls of the MPI, where ours takes `ratio` times as long, a
/// pair is synchronised in `synchronising` calls, and nothing is ever decided.
double overhead(double share, double ratio, double synchronising, std::int64_t calls) {
    Pace pace(share, Pace::most_credit);
    double spent = 0;
    for (std::int64_t at = 1; at < calls;) {
        pace.add(ratio, 1, synchronising, Verdict::open);
        spent += std::max(0.0, synchronising + ratio - 1);
        at += 1;
        at += pace.calls_to_next_pair(at);
    }
    return spent;
}

TEST(Pace, comparing_takes_no_more_than_its_credit_and_share) {
    for (const double share : {0.001, 0.01, 0.5})
        for (const double ratio : {0.5, 1.1, 2.0, 5.0})
            for (const double synchronising : {0.001, 0.3, 3.0})
                for (const std::int64_t calls : {100, 10000})
                    EXPECT_LE(overhead(share, ratio, synchronising, calls),
                              std::max(Pace::most_credit, synchronising + ratio) + share * static_cast<double>(calls))
                        << share << ' ' << ratio << ' ' << synchronising << ' ' << calls;
}

TEST(Pace, a_difference_of_two_is_seen_at_once_where_calls_are_long) {
    Pace pace(0.01, Pace::most_credit);
    std::vector<double> ours, mpi;
    for (std::int64_t calls = 2; judge(ours, mpi) == Verdict::open; calls += 2) {
        ASSERT_LT(calls, 14);
        pace.add(2, 1, 0.05, Verdict::open);
        EXPECT_EQ(pace.calls_to_next_pair(calls), 1);
        ours.push_back(2), mpi.push_back(1);
    }
}

TEST(Pace, ten_pairs_that_differ_by_a_third_follow_each_other) {
    Pace pace(0.01, Pace::most_credit);
    for (std::int64_t calls = 2; calls <= 20; calls += 2) {
        pace.add(1.3, 1, 0.05, Verdict::open);
        EXPECT_EQ(pace.calls_to_next_pair(calls), 1) << calls;
    }
}

TEST(Pace, a_choice_on_trial_that_wins_is_compared_until_that_is_known) {
    Pace pace(0.01, Pace::credit_on_trial);
    for (std::int64_t calls = 2; calls <= 50; calls += 2) {
        pace.add(0.7, 1, 0.4, Verdict::open);
        EXPECT_LE(pace.calls_to_next_pair(calls), calls < 40 ? 1 : 1000) << calls;
    }
}

TEST(Pace, without_credit_the_share_pays_first) {
    Pace pace(0.01, 0);
    pace.add(2, 1, 0, Verdict::open);
    EXPECT_NEAR(static_cast<double>(pace.calls_to_next_pair(2)), 199, 1);
}

TEST(Pace, a_verdict_is_verified_by_a_tenth_of_the_share) {
    Pace pace(0.01, Pace::most_credit);
    pace.add(1e-3, 2e-3, 0, Verdict::faster);
    EXPECT_NEAR(static_cast<double>(pace.calls_to_next_pair(2)), 1001, 1);
}

TEST(Pace, one_disturbed_pair_postpones_nothing) {
    Pace pace(0.01, Pace::most_credit);
    for (int i = 0; i < 2; ++i) pace.add(1, 1, 0.01, Verdict::open);
    pace.add(1000, 1, 0.01, Verdict::open);
    EXPECT_EQ(pace.calls_to_next_pair(6), 1);
}

TEST(Pace, pairs_that_cost_beyond_all_measure_are_the_last_ones) {
    Pace pace(1e-3, Pace::most_credit);
    pace.add(1e9, 1e-9, 0, Verdict::open);
    EXPECT_GT(pace.calls_to_next_pair(2), std::int64_t{1} << 39);
}

}  // namespace
}  // namespace palmette::select
