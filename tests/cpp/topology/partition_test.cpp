#include "palmette/topology/partition.hpp"

#include <gmock/gmock.h>

#include "support/errors.hpp"

namespace palmette::topology {
namespace {

using test::error_of;

void expect_consistent(const Partition& partition) {
    std::int32_t position = 0;
    for (std::int32_t g = 0; g < partition.count(); ++g) {
        EXPECT_EQ(partition.first(g), position);
        EXPECT_GT(partition.size_of(g), 0);
        for (; position < partition.end(g); ++position) EXPECT_EQ(partition.group_of(position), g);
    }
    EXPECT_EQ(position, partition.size());
    EXPECT_EQ(partition.first(partition.count()), partition.size());
}

TEST(Partition, even_groups_may_end_with_a_smaller_one) {
    const Partition partition = Partition::even(10, 4);
    EXPECT_EQ(partition.count(), 3);
    EXPECT_EQ(partition.size_of(2), 2);
    expect_consistent(partition);
}

TEST(Partition, uneven_groups_keep_their_sizes) {
    const Partition partition = Partition::from_firsts(9, {0, 1, 6, 8});
    EXPECT_EQ(partition.even_size(), 0);
    EXPECT_EQ(partition.size_of(1), 5);
    expect_consistent(partition);
}

TEST(Partition, a_list_of_equal_groups_becomes_even_by_itself) {
    EXPECT_EQ(Partition::from_firsts(8, {0, 4}), Partition::even(8, 4));
    EXPECT_EQ(Partition::from_firsts(10, {0, 4, 8}), Partition::even(10, 4));
    EXPECT_EQ(Partition::from_firsts(5, {0}), Partition::even(5, 5));
    // A last group that is larger than the others is not even.
    EXPECT_EQ(Partition::from_firsts(10, {0, 4}).even_size(), 0);
    expect_consistent(Partition::from_firsts(10, {0, 4}));
}

TEST(Partition, even_groups_of_a_large_job_do_not_overflow) {
    const Partition partition = Partition::even(2'000'000'000, 1'500'000'000);
    EXPECT_EQ(partition.count(), 2);
    EXPECT_EQ(partition.end(1), 2'000'000'000);
}

TEST(Partition, wrong_lists_are_refused) {
    EXPECT_EQ(error_of([] { Partition::from_firsts(4, {1, 2}); }), "groups of positions must begin at 0");
    EXPECT_EQ(error_of([] { Partition::from_firsts(4, {0, 2, 2}); }),
              "groups of positions must ascend: group 2 begins at 2");
    EXPECT_EQ(error_of([] { Partition::from_firsts(4, {0, 4}); }), "group 1 begins past the last position");
    EXPECT_EQ(error_of([] { Partition::from_firsts(4, {}); }), "groups of positions must begin at 0");
    EXPECT_NE(error_of([] { Partition::even(4, 0); }), "no error");
}

}  // namespace
}  // namespace palmette::topology
