#include "palmette/plan/blocks.hpp"

#include <gmock/gmock.h>

namespace palmette::plan {
namespace {

using testing::ElementsAre;

TEST(Blocks, neighbouring_intervals_become_one_in_any_order_of_insertion) {
    Blocks blocks;
    for (const Interval interval : {Interval{6, 2}, Interval{0, 2}, Interval{4, 2}, Interval{9, 1}})
        blocks.insert(interval);
    EXPECT_THAT(blocks.intervals(), ElementsAre(Interval{0, 2}, Interval{4, 4}, Interval{9, 1}));
    blocks.insert({2, 2});
    EXPECT_THAT(blocks.intervals(), ElementsAre(Interval{0, 8}, Interval{9, 1}));
    EXPECT_EQ(blocks.count(), 9);
}

TEST(Blocks, empty_intervals_change_nothing) {
    Blocks blocks(3, 0);
    blocks.insert({5, 0});
    EXPECT_TRUE(blocks.empty());
    EXPECT_EQ(blocks, Blocks());
}

TEST(Blocks, equal_sets_are_equal_however_they_were_made) {
    Blocks pieces(2, 1);
    pieces.unite(Blocks(0, 2));
    pieces.unite(Blocks(3, 4));
    EXPECT_EQ(pieces, Blocks(0, 7));
}

TEST(Blocks, taking_one_out_cuts_an_interval) {
    EXPECT_THAT(Blocks(2, 5).without(4).intervals(), ElementsAre(Interval{2, 2}, Interval{5, 2}));
    EXPECT_THAT(Blocks(2, 5).without(2).intervals(), ElementsAre(Interval{3, 4}));
    EXPECT_EQ(Blocks(2, 5).without(7), Blocks(2, 5));
    EXPECT_TRUE(Blocks(2, 1).without(2).empty());
}

TEST(Blocks, know_what_they_contain) {
    Blocks blocks(2, 3);
    blocks.insert({8, 1});
    for (std::int64_t b = 0; b < 11; ++b) EXPECT_EQ(blocks.contains(b), (b >= 2 && b < 5) || b == 8) << b;
    EXPECT_FALSE(Blocks().contains(0));
}

}  // namespace
}  // namespace palmette::plan
