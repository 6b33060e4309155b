#include "palmette/select/verdict.hpp"

#include <gmock/gmock.h>

#include "support/errors.hpp"

namespace palmette::select {
namespace {

using test::error_of;
using testing::HasSubstr;

/// `lost` pairs at `ratio`, then `won` pairs at half the other's time.
Verdict verdict_of(std::size_t lost, std::size_t won, double ratio) {
    std::vector<double> ours(lost, 2e-3 * ratio);
    ours.insert(ours.end(), won, 1e-3);
    return judge(ours, std::vector<double>(lost + won, 2e-3));
}

TEST(SignTest, is_the_tail_of_fair_tosses) {
    EXPECT_DOUBLE_EQ(sign_test(5, 5), 1.0 / 32);
    EXPECT_DOUBLE_EQ(sign_test(4, 5), 6.0 / 32);
    EXPECT_DOUBLE_EQ(sign_test(0, 7), 1);
    EXPECT_EQ(sign_test(8, 7), 0);
    EXPECT_NEAR(sign_test(5001, 10001), 0.5, 1e-9) << "where 2^-pairs is no double";
}

TEST(Verdict, needs_five_pairs) {
    EXPECT_EQ(verdict_of(4, 0, 1.4), Verdict::open);
    EXPECT_EQ(verdict_of(5, 0, 1.4), Verdict::slower);
    EXPECT_EQ(judge({3, 3, 3, 3}, {4, 4, 4, 4}), Verdict::open);
    EXPECT_EQ(judge({3, 3, 3, 3, 3}, {4, 4, 4, 4, 4}), Verdict::faster);
}

TEST(Verdict, is_plain_after_three_pairs_that_all_differ_much) {
    EXPECT_EQ(verdict_of(0, 2, 1), Verdict::open);
    EXPECT_EQ(verdict_of(0, 3, 1), Verdict::faster);
    EXPECT_EQ(verdict_of(2, 0, 10), Verdict::open);
    EXPECT_EQ(verdict_of(3, 0, 1.5), Verdict::slower);
    EXPECT_EQ(verdict_of(3, 1, 10), Verdict::open);
}

TEST(Verdict, stays_open_while_chance_explains_it) {
    EXPECT_EQ(verdict_of(6, 1, 10), Verdict::open);
    EXPECT_EQ(verdict_of(7, 1, 10), Verdict::slower);
    EXPECT_EQ(verdict_of(8, 3, 10), Verdict::open);
    EXPECT_EQ(verdict_of(9, 2, 10), Verdict::slower);
}

TEST(Verdict, lets_five_percent_pass) {
    EXPECT_EQ(verdict_of(5, 0, 1.04), Verdict::open);
    EXPECT_EQ(verdict_of(25, 0, 1.04), Verdict::same);
    EXPECT_EQ(verdict_of(25, 0, 1.06), Verdict::slower);
}

TEST(Verdict, is_the_same_after_25_pairs_that_disagree) {
    EXPECT_EQ(verdict_of(12, 12, 2), Verdict::open);
    EXPECT_EQ(verdict_of(13, 12, 2), Verdict::same);
}

TEST(Verdict, doesnt_depend_on_which_pair_came_first) {
    EXPECT_EQ(judge({3, 1, 3, 3, 3, 3, 3, 3}, {2, 2, 2, 2, 2, 2, 2, 2}), Verdict::slower);
    EXPECT_EQ(judge({3, 3, 3, 3, 3, 3, 3, 1}, {2, 2, 2, 2, 2, 2, 2, 2}), Verdict::slower);
}

TEST(Verdict, refuses_lists_of_different_length) {
    EXPECT_THAT(error_of([] { judge({1, 2}, {1}); }), HasSubstr("2 times of ours and 1 of the other"));
}

TEST(Median, is_the_lower_one_of_two_in_the_middle) {
    EXPECT_EQ(median({}), 0);
    EXPECT_EQ(median({4, 1, 3, 2}), 2);
    EXPECT_EQ(median({5, 1, 3}), 3);
}

}  // namespace
}  // namespace palmette::select
