// Sparse sums: signatures, and programs that ranks make of their own parts.
#include "palmette/compose/sparse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "palmette/compose/factor.hpp"
#include "palmette/compose/promise.hpp"
#include "palmette/plan/verify.hpp"
#include "support/errors.hpp"

namespace palmette::compose {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Words, runs_are_cut_at_the_ranges_of_owners) {
    const auto runs = runs_by_owner({7, 2, 3, 3, 1, 4}, {0, 3, 3, 8});
    ASSERT_EQ(runs.size(), 3U);
    EXPECT_THAT(runs[0], ElementsAre(1, 2));
    EXPECT_THAT(runs[1], IsEmpty());
    EXPECT_THAT(runs[2], ElementsAre(3, 2, 7, 1));
    EXPECT_EQ(test::error_of([&] { runs_by_owner({8}, {0, 8}); }), "index 8 is touched, outside of 0 to 7");
}

TEST(Words, more_than_an_int_counts_are_refused) {
    EXPECT_THAT(offsets_of({3, 0, 4}), ElementsAre(0, 3, 3));
    EXPECT_THAT(offsets_of({INT32_MAX - 1, 1}), ElementsAre(0, INT32_MAX - 1));
    EXPECT_EQ(test::error_of([&] { offsets_of({INT32_MAX, 1, 0}); }),
              "this rank and the others would exchange 2147483648 numbers or more about indices; raise coarsen");
}

TEST(Signatures, indices_with_the_same_contributors_are_one_block) {
    const auto made =
        signatures({{0, {0, 2}}, {0, {4, 1}}, {1, {0, 3}}, {2, {5, 1}}, {1, {5, 1}}, {0, {1, 1}}}, {0, 6}, 1);
    ASSERT_EQ(made.size(), 4U);
    EXPECT_THAT(made[0].contributors, ElementsAre(0, 1));
    EXPECT_THAT(made[0].indices, ElementsAre(Interval{0, 2}));
    EXPECT_THAT(made[1].contributors, ElementsAre(1));
    EXPECT_THAT(made[2].contributors, ElementsAre(0));
    EXPECT_THAT(made[3].contributors, ElementsAre(1, 2));
}

TEST(Signatures, coarse_ones_begin_at_multiples_and_end_with_the_owners_range) {
    const auto made = signatures({{0, {5, 1}}, {0, {9, 1}}}, {5, 5}, 4);
    ASSERT_EQ(made.size(), 1U);
    EXPECT_THAT(made[0].indices, ElementsAre(Interval{5, 5}));
    EXPECT_EQ(made[0].count(), 5);
    EXPECT_THAT(signatures({}, {5, 5}, 4), IsEmpty());
}

TEST(Signatures, are_read_as_they_were_written) {
    std::vector<std::int64_t> words;
    write(words, 7, {{1, 2, 5}, {{10, 3}, {20, 1}}}, true);
    write(words, 8, {{4}, {{30, 2}}}, false);
    std::vector<SparseBlock> blocks;
    read(Rank{3}, words.data(), static_cast<std::int64_t>(words.size()), blocks);
    ASSERT_EQ(blocks.size(), 2U);
    EXPECT_EQ(blocks[0].count, 4);
    EXPECT_TRUE(blocks[0].contributors.contains(5));
    EXPECT_FALSE(blocks[0].contributors.contains(4));
    EXPECT_THAT(blocks[0].indices, ElementsAre(Interval{10, 3}, Interval{20, 1}));
    EXPECT_EQ(blocks[1].number, 8);
    EXPECT_THAT(blocks[1].indices, IsEmpty());
    EXPECT_EQ(test::error_of([&] { read(Rank{3}, words.data(), 5, blocks); }),
              "rank 3 tells a block that ends too early");
}

/// Random footprints on ranks, and the blocks of all owners.
std::vector<SparseBlock> random_blocks(std::int32_t ranks, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<SparseBlock> out;
    for (std::int32_t owner = 0; owner < ranks; ++owner)
        for (int i = 0; i < 6; ++i) {
            std::vector<std::int32_t> set{static_cast<std::int32_t>(random() % static_cast<unsigned>(ranks))};
            for (std::int32_t r = 0; r < ranks; ++r)
                if (random() % 4 == 0) set.push_back(r);
            out.push_back({static_cast<std::int64_t>(out.size()),
                           Rank{owner},
                           1 + static_cast<std::int64_t>(random() % 5),
                           RankSet::of(std::move(set)),
                           {}});
        }
    return out;
}

TEST(LocalCompositions, make_the_programs_that_are_right_together) {
    const Job scattered = Job::from_groups(
        {"leaf", "node"},
        {{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 0}, {2, 0}, {1, 0}, {0, 1}, {2, 1}, {1, 1}, {0, 0}, {2, 0}});
    const std::int32_t ranks = scattered.size();
    const std::vector<SparseBlock> blocks = random_blocks(ranks, 5);
    for (const Factoring& factoring :
         {Factoring{}, Factoring{{Method::parse("ring")}, 1, 3}, Factoring{{Method::parse("tree.2/1")}, 2},
          Factoring{{Method::parse("direct/1")}}})
        for (const bool back : {false, true})
            for (const bool commutative : {true, false}) {
                const Operation operation{"sum", commutative};
                const Tree tree = Tree::of(scattered);
                const auto composed = [&](const std::vector<SparseBlock>& known) {
                    return sparse_composition(ranks, static_cast<std::int64_t>(blocks.size()), known, 8, 4, operation,
                                              back);
                };
                const Composition whole = composed(blocks);
                const Factory everything(whole, scattered, tree, factoring);
                std::vector<std::vector<SparseBlock>> known(static_cast<std::size_t>(ranks));
                whole.visit([&](std::int32_t phase, const Primitive& primitive) {
                    for (const std::int32_t rank : everything.ranks_of(phase, primitive))
                        known[static_cast<std::size_t>(rank)].push_back(
                            blocks[static_cast<std::size_t>(primitive.blocks.first)]);
                });
                plan::Plan plan;
                plan.request.collective = plan::Collective::composed;
                plan.request.element_bytes = 4;
                plan.contract = std::make_shared<Promise>(whole, factoring.stripes);
                std::uint64_t sum = 0;
                for (std::int32_t r = 0; r < ranks; ++r) {
                    const Composition part = composed(known[static_cast<std::size_t>(r)]);
                    std::uint64_t balance = 0;
                    plan.programs.push_back(Factory(part, scattered, tree, factoring).program(Rank{r}, &balance));
                    sum += balance;
                }
                EXPECT_EQ(sum, 0U) << factoring.text();
                const auto complaint = plan::verify(plan, scattered);
                EXPECT_FALSE(complaint) << factoring.text() << ": " << *complaint;
            }
}

TEST(LocalCompositions, that_differ_about_a_block_are_found_by_the_sum_over_all_ranks) {
    const Job job = job_of_hierarchy("2:2", 4);
    const Tree tree = Tree::of(job);
    const std::vector<SparseBlock> blocks = random_blocks(4, 1);
    for (const bool lengths : {true, false}) {
        std::uint64_t sum = 0;
        for (std::int32_t r = 0; r < 4; ++r) {
            std::vector<SparseBlock> known = blocks;
            if (r == 2 && lengths) ++known[3].count;
            if (r == 2 && !lengths) known[3].contributors = RankSet::of({0, 1, 2, 3});
            const Composition part =
                sparse_composition(4, static_cast<std::int64_t>(blocks.size()), known, 4, 4, {}, false);
            std::uint64_t balance = 0;
            Factory(part, job, tree, {}).program(Rank{r}, &balance);
            sum += balance;
        }
        EXPECT_NE(sum, 0U);
    }
}

TEST(LocalCompositions, ask_for_no_length_that_they_do_not_know) {
    const Lengths some = Lengths::some(10, {{2, 16}, {5, 8}});
    EXPECT_EQ(some[5], 8);
    EXPECT_EQ(test::error_of([&] { return some[3]; }), "the length of block 3 isn't known to this rank");
}

}  // namespace
}  // namespace palmette::compose
