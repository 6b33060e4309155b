#include "palmette/compose/composition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "palmette/compose/factor.hpp"
#include "palmette/plan/verify.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::compose {
namespace {

using test::error_of;

std::optional<std::string> verified(const Composition& composition, const Job& job, Factoring factoring = {}) {
    const Tree tree = Tree::of(job);
    return plan::verify(Factory(composition, job, tree, std::move(factoring)).plan(), job);
}

TEST(Composition, may_say_anything_with_several_buffers_and_operations) {
    // Neighbours exchange borders, then groups sum, then everybody gets the largest sum.
    Composition made(6, Lengths::rule(12, [](std::int64_t b) { return 8 * (b % 3); }), 4);
    const Buffer field = made.buffer("field"), ghost = made.buffer("ghost"), sum = made.buffer("sum"),
                 most = made.buffer("most");
    const auto plus = made.operation({"sum", true}), max = made.operation({"max", true});
    for (std::int32_t r = 0; r < 6; ++r) made.multicast({r}, RankSet::one({(r + 1) % 6}), field, {r, 1}, ghost);
    made.fence();
    made.reduce(RankSet::of({0, 1, 2}), {1}, field, {6, 3}, sum, plus);
    made.reduce(RankSet::of({3, 4, 5}), {5}, field, {6, 3}, sum, plus);
    made.fence();
    made.reduce(RankSet::of({5, 1}), {0}, sum, {6, 3}, most, max);
    made.fence();
    made.multicast({0}, RankSet::of({0, 2, 5}), most, {7, 1}, most);
    for (const char* hierarchy : {"6", "2:3", "3:1+2+3"})
        for (const Factoring& factoring : {Factoring{}, Factoring{{Method::parse("tree.2/1")}, 2, 3, 1}}) {
            const auto complaint = verified(made, job_of_hierarchy(hierarchy, 6), factoring);
            EXPECT_FALSE(complaint) << hierarchy << ": " << *complaint;
        }
}

TEST(Composition, whose_primitives_meet_in_a_phase_is_refused_with_their_names) {
    Composition made(3, Lengths::uniform(3, 8));
    const Buffer x = made.buffer("x"), y = made.buffer("y");
    made.multicast({0}, RankSet::all(3), x, {0, 2}, y);
    made.multicast({1}, RankSet::one({2}), y, {1, 1}, x);
    EXPECT_EQ(error_of([&] { verified(made, job_of_hierarchy("3", 3)); }),
              "phase 0, multicast from rank 1: reads block 1 of 'y' on rank 1, which another primitive of the phase "
              "writes; put a fence between them");
}

TEST(Composition, with_a_fence_between_sees_what_the_phase_before_wrote) {
    Composition made(3, Lengths::uniform(3, 8));
    const Buffer x = made.buffer("x"), y = made.buffer("y");
    made.multicast({0}, RankSet::all(3), x, {0, 2}, y);
    made.fence();
    made.multicast({1}, RankSet::one({2}), y, {1, 1}, x);
    const auto complaint = verified(made, job_of_hierarchy("3", 3));
    EXPECT_FALSE(complaint) << *complaint;
}

TEST(Composition, readers_of_a_block_stay_together_and_a_writer_among_them_is_found) {
    Composition made(4, Lengths::uniform(1, 8));
    const Buffer x = made.buffer("x"), y = made.buffer("y");
    made.multicast({0}, RankSet::one({1}), x, {0, 1}, y);
    made.multicast({0}, RankSet::one({2}), x, {0, 1}, y);
    const Job job = job_of_hierarchy("4", 4);
    EXPECT_FALSE(verified(made, job));
    made.multicast({1}, RankSet::one({0}), y, {0, 1}, x);
    EXPECT_THAT(error_of([&] { verified(made, job); }), testing::HasSubstr("put a fence between them"));
}

TEST(Composition, that_names_what_there_is_not_is_refused) {
    Composition made(3, Lengths::uniform(2, 8));
    const Buffer x = made.buffer("x");
    EXPECT_EQ(error_of([&] { made.multicast({3}, RankSet::all(3), x, {0, 1}, x); }),
              "multicast from rank 3: there are only the ranks 0 to 2");
    EXPECT_EQ(error_of([&] { made.multicast({0}, RankSet::of({1, 5}), x, {0, 1}, x); }),
              "multicast from rank 0: rank 5 of its set is outside of 0 to 2");
    EXPECT_EQ(error_of([&] { made.multicast({0}, RankSet::of({}), x, {0, 1}, x); }),
              "multicast from rank 0: no rank receives; name at least one");
    EXPECT_EQ(error_of([&] { made.multicast({0}, RankSet::all(3), x, {1, 2}, x); }),
              "multicast from rank 0: blocks 1 to 2 are none of the blocks 0 to 1");
    EXPECT_EQ(error_of([&] { made.reduce(RankSet::all(3), {0}, x, {0, 1}, x, 0); }),
              "reduce to rank 0: operation 0 of 0; add it with operation()");
}

TEST(Composition, verifier_finds_a_plan_that_does_something_else) {
    Composition sum(4, Lengths::uniform(1, 8)), part(4, Lengths::uniform(1, 8));
    for (Composition* made : {&sum, &part}) {
        const Buffer x = made->buffer("x"), y = made->buffer("y");
        made->reduce(made == &sum ? RankSet::all(4) : RankSet::of({0, 1, 3}), {0}, x, {0, 1}, y,
                     made->operation({"sum", true}));
        made->hold({2}, x, {0, 1});
    }
    const Job job = job_of_hierarchy("2:2", 4);
    const Tree tree = Tree::of(job);
    plan::Plan wrong = Factory(part, job, tree, {}).plan();
    EXPECT_FALSE(plan::verify(wrong, job));
    wrong.contract = Factory(sum, job, tree, {}).plan().contract;
    const auto complaint = plan::verify(wrong, job);
    ASSERT_TRUE(complaint);
    EXPECT_THAT(*complaint, testing::StartsWith("rank 0: y block 0 ends with operation 0 over block 0 of ranks "));
}

TEST(Composition, noncommutative_operations_keep_the_order_of_ranks_in_any_placement) {
    for (const char* placement : {"block", "cyclic", "random:7"}) {
        const Job job = test::job_on("3leaf:2node:2core", placement);
        Composition made(12, Lengths::uniform(1, 8));
        const Buffer x = made.buffer("x"), y = made.buffer("y");
        const auto op = made.operation({"first", false});
        made.reduce(RankSet::of({1, 2, 3, 5, 8, 9, 11}), {5}, x, {0, 1}, x, op);
        made.fence();
        made.reduce(RankSet::all(12), {3}, x, {0, 1}, y, op);
        for (const char* method : {"direct", "tree.2/1", "ring"}) {
            const auto complaint = verified(made, job, {{Method::parse(method)}, 2, 2, 1});
            EXPECT_FALSE(complaint) << placement << ", " << method << ": " << *complaint;
        }
    }
}

}  // namespace
}  // namespace palmette::compose
