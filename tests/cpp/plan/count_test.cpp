#include "palmette/plan/count.hpp"

#include <gmock/gmock.h>

#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::plan {
namespace {

using test::error_of;
using test::job_on;
using testing::HasSubstr;

/// Ranks 0..3 on leaves {0 1} {2 3}, one a node; everyone sends straight to rank 0.
Plan star() {
    Plan plan{{Collective::gather, Rank{0}, 10}, "by hand", {}};
    for (std::int32_t me = 0; me < 4; ++me) {
        ProgramBuilder builder(Rank{me}, BlockOrder::topology);
        builder.stage("star");
        if (me == 0) {
            for (std::int32_t r = 1; r < 4; ++r) builder.recv(Rank{r}, 0, Buffer::recv, Blocks(r, 1), {});
            builder.copy(Buffer::send, Buffer::recv, Blocks(0, 1), {});
        } else {
            builder.send(Rank{0}, 0, Buffer::send, Blocks(me, 1), {});
        }
        plan.programs.push_back(builder.finish());
    }
    return plan;
}

TEST(Count, sums_messages_and_bytes_over_every_link_in_both_directions) {
    const PlanCount count = plan::count(star(), job_on("2leaf:2node"), {10});
    EXPECT_EQ(count.messages, 3);
    EXPECT_EQ(count.bytes, 30);
    EXPECT_EQ(count.copied_bytes, 10);
    EXPECT_EQ(count.longest_chain, 1);
    ASSERT_EQ(count.levels.size(), 2U);
    const LevelCount& leaf = count.levels[0];
    EXPECT_EQ(leaf.level, "leaf");
    EXPECT_EQ(leaf.messages, 2);
    EXPECT_EQ(leaf.bytes, 20);
    EXPECT_EQ(leaf.links[0].bytes_in, 20);
    EXPECT_EQ(leaf.links[0].bytes_out, 0);
    EXPECT_EQ(leaf.links[1].messages_out, 2);
    EXPECT_EQ(count.levels[1].messages, 3);
    EXPECT_EQ(count.levels[1].links[0].bytes_in, 30);
}

TEST(Count, blocks_may_have_lengths_of_their_own) {
    const PlanCount count = plan::count(star(), job_on("2leaf:2node"), {1, 20, 300, 0});
    EXPECT_EQ(count.bytes, 320);
    EXPECT_EQ(count.copied_bytes, 1);
    EXPECT_EQ(count.levels[0].bytes, 300);
    EXPECT_THAT(error_of([] { plan::count(star(), job_on("2leaf:2node"), {1, 2}); }),
                HasSubstr("expected one, or one for each of 4 blocks, found 2"));
}

TEST(Count, the_busiest_link_is_the_slowest_where_capacities_are_known) {
    const PlanCount unknown = plan::count(star(), job_on("2leaf:2node"), {10});
    EXPECT_EQ(unknown.levels[static_cast<std::size_t>(unknown.busiest_level)].level, "node");
    EXPECT_EQ(unknown.busiest_group, 0);
    EXPECT_EQ(unknown.busiest_s, 0);
    const PlanCount known = plan::count(star(), job_on("2leaf@1B/s:2node@10B/s"), {10});
    EXPECT_EQ(known.levels[static_cast<std::size_t>(known.busiest_level)].level, "leaf");
    EXPECT_DOUBLE_EQ(known.busiest_s, 20);
}

TEST(Count, nothing_is_busy_when_nothing_is_sent) {
    const Plan plan{{Collective::gather, Rank{0}, 10}, "by hand", {star().programs[0]}};
    Plan alone = plan;
    alone.programs[0] = ProgramBuilder(Rank{0}, BlockOrder::rank).finish();
    const PlanCount count = plan::count(alone, Job::flat(1), {10});
    EXPECT_EQ(count.busiest_level, -1);
    EXPECT_EQ(count.longest_chain, 0);
}

TEST(Messages, come_by_the_length_of_the_chain_that_they_wait_for) {
    Plan plan{{Collective::gather, Rank{0}, 10}, "by hand", {}};
    ProgramBuilder root(Rank{0}, BlockOrder::rank);
    root.stage("chain");
    root.recv(Rank{1}, 0, Buffer::recv, Blocks(1, 2), {});
    root.copy(Buffer::send, Buffer::recv, Blocks(0, 1), {});
    ProgramBuilder middle(Rank{1}, BlockOrder::rank);
    middle.stage("chain");
    middle.reserve_scratch(Blocks(1, 2));
    const StepId arrived = middle.recv(Rank{2}, 5, Buffer::scratch, Blocks(2, 1), {});
    const StepId own = middle.copy(Buffer::send, Buffer::scratch, Blocks(1, 1), {});
    middle.send(Rank{0}, 0, Buffer::scratch, Blocks(1, 2), {arrived, own});
    ProgramBuilder last(Rank{2}, BlockOrder::rank);
    last.stage("chain");
    last.send(Rank{1}, 5, Buffer::send, Blocks(2, 1), {});
    for (ProgramBuilder* builder : {&root, &middle, &last}) plan.programs.push_back(builder->finish());
    const std::vector<Message> messages = messages_of(plan);
    ASSERT_EQ(messages.size(), 2U);
    EXPECT_EQ(messages[0].from, Rank{2});
    EXPECT_EQ(messages[0].time, 0);
    EXPECT_EQ(messages[0].tag, 5);
    EXPECT_EQ(messages[1].from, Rank{1});
    EXPECT_EQ(messages[1].time, 1);
    EXPECT_EQ(messages[1].blocks, Blocks(1, 2));
    EXPECT_EQ(plan::count(plan, Job::flat(3), {10}).longest_chain, 2);
}

}  // namespace
}  // namespace palmette::plan
