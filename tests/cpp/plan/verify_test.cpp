// The verifier's rules, one small plan each, made by hand. tests/cpp/collectives/mutation_test.cpp breaks real plans.
#include "palmette/plan/verify.hpp"

#include <gmock/gmock.h>

#include "support/edit_program.hpp"

namespace palmette::plan {
namespace {

using test::drop_step;
using test::put_together;
using test::take_apart;
using testing::HasSubstr;
using testing::Optional;

const Job three = Job::flat(3);
const Job two = Job::flat(2);

/// Three ranks, root 0: 2 gives to 1, 1 gives both blocks to 0.
Plan chain() {
    Plan plan{{Collective::gather, Rank{0}, 8}, "by hand", {}};
    ProgramBuilder root(Rank{0}, BlockOrder::rank);
    root.stage("chain");
    root.recv(Rank{1}, 0, Buffer::recv, Blocks(1, 2), {});
    root.copy(Buffer::send, Buffer::recv, Blocks(0, 1), {});
    plan.programs.push_back(root.finish());
    ProgramBuilder middle(Rank{1}, BlockOrder::rank);
    middle.stage("chain");
    middle.reserve_scratch(Blocks(1, 2));
    const StepId arrived = middle.recv(Rank{2}, 0, Buffer::scratch, Blocks(2, 1), {});
    const StepId own = middle.copy(Buffer::send, Buffer::scratch, Blocks(1, 1), {});
    middle.send(Rank{0}, 0, Buffer::scratch, Blocks(1, 2), {arrived, own});
    plan.programs.push_back(middle.finish());
    ProgramBuilder last(Rank{2}, BlockOrder::rank);
    last.stage("chain");
    last.send(Rank{1}, 0, Buffer::send, Blocks(2, 1), {});
    plan.programs.push_back(last.finish());
    return plan;
}

/// Two ranks that exchange their blocks.
Plan pair() {
    Plan plan{{Collective::allgather, Rank{0}, 8}, "by hand", {}};
    for (const std::int32_t me : {0, 1}) {
        ProgramBuilder builder(Rank{me}, BlockOrder::rank);
        builder.stage("exchange");
        const StepId own = builder.copy(Buffer::send, Buffer::recv, Blocks(me, 1), {});
        builder.send(Rank{1 - me}, 0, Buffer::recv, Blocks(me, 1), {own});
        builder.recv(Rank{1 - me}, 0, Buffer::recv, Blocks(1 - me, 1), {});
        plan.programs.push_back(builder.finish());
    }
    return plan;
}

TEST(Verifier, passes_plans_that_are_right) {
    EXPECT_EQ(verify(chain(), three), std::nullopt);
    EXPECT_EQ(verify(pair(), two), std::nullopt);
}

TEST(Verifier, finds_a_send_that_nobody_takes) {
    Plan plan = chain();
    drop_step(plan.programs[0], 0);
    EXPECT_THAT(verify(plan, three),
                Optional(HasSubstr("rank 1, step 2 (send to 0, tag 0): no other rank has the matching step")));
}

TEST(Verifier, finds_a_recv_that_nobody_serves) {
    Plan plan = chain();
    drop_step(plan.programs[2], 0);
    EXPECT_THAT(verify(plan, three),
                Optional(HasSubstr("rank 1, step 0 (recv from 2, tag 0): no other rank has the matching step")));
}

TEST(Verifier, finds_a_dropped_copy_by_the_read_that_needs_it) {
    Plan plan = chain();
    drop_step(plan.programs[1], 1);
    EXPECT_THAT(verify(plan, three),
                Optional(HasSubstr("rank 1, step 1 (send, chain): reads scratch block 1 before anything is there")));
}

TEST(Verifier, finds_a_dropped_copy_by_the_result_that_lacks_it) {
    Plan plan = chain();
    drop_step(plan.programs[0], 1);
    EXPECT_THAT(verify(plan, three), Optional(HasSubstr("rank 0: block 0 of the result is never written")));
}

TEST(Verifier, finds_a_wrong_tag) {
    Plan plan = chain();
    plan.programs[2].steps[0].tag = 7;
    EXPECT_THAT(verify(plan, three), Optional(HasSubstr("(recv from 2, tag 0): no other rank has the matching step")));
}

TEST(Verifier, finds_a_second_message_that_could_be_taken_for_the_first) {
    // On the sender's side only, on the receiver's only, on both.
    for (const std::vector<std::size_t>& doubled : {std::vector<std::size_t>{1}, {2}, {1, 2}}) {
        Plan plan = chain();
        for (const std::size_t rank : doubled) {
            auto steps = take_apart(plan.programs[rank]);
            steps.push_back(steps[0]);
            put_together(plan.programs[rank], steps);
        }
        const auto complaint = verify(plan, three);
        EXPECT_THAT(complaint, Optional(HasSubstr("a second message with the same tag between the same two ranks")));
        EXPECT_THAT(complaint,
                    Optional(HasSubstr(doubled[0] == 1 && doubled.size() == 1 ? "rank 1, step 3 (recv from 2, tag 0)"
                                                                              : "rank 2, step 1 (send to 1, tag 0)")));
    }
}

TEST(Verifier, finds_a_peer_outside_of_the_job_and_a_message_to_oneself) {
    for (const std::int32_t peer : {2, 3, -1}) {
        Plan plan = chain();
        plan.programs[2].steps[0].peer = Rank{peer};
        EXPECT_THAT(verify(plan, three), Optional(HasSubstr("rank 2, step 0")));
        EXPECT_THAT(verify(plan, three), Optional(HasSubstr("its peer is not another rank of the job")));
    }
}

TEST(Verifier, finds_other_blocks_on_the_other_side) {
    Plan fewer = chain();
    fewer.programs[0].regions[0].blocks = {1, 1};
    EXPECT_THAT(
        verify(fewer, three),
        Optional(HasSubstr("rank 0, step 0 (recv, chain): takes 1 blocks where rank 1, step 2 (send, chain) sends 2")));
    Plan other = chain();
    other.programs[1].regions[0].blocks = {1, 1};
    EXPECT_THAT(verify(other, three),
                Optional(HasSubstr(
                    "rank 1, step 0 (recv, chain): takes block 1 where rank 2, step 0 (send, chain) sends block 2")));
    Plan part = chain();
    part.programs[2].steps[0].slice = {0, 2};
    EXPECT_THAT(verify(part, three),
                Optional(HasSubstr("takes part 1/1 where rank 2, step 0 (send, chain) sends part 1/2")));
}

TEST(Verifier, finds_blocks_that_were_swapped_on_the_way) {
    Plan plan = chain();
    auto steps = take_apart(plan.programs[0]);
    // The root takes its own block for another one's: block 0 lands at 1.
    steps[1].regions[1].blocks = {1, 1};
    put_together(plan.programs[0], steps);
    EXPECT_THAT(verify(plan, three),
                Optional(HasSubstr(
                    "rank 0, step 1 (copy, chain) and step 0 touch recv block 1 and neither waits for the other")));
    steps[1].waits = {0};
    put_together(plan.programs[0], steps);
    EXPECT_THAT(verify(plan, three), Optional(HasSubstr("rank 0: block 0 of the result is never written")));
    steps[1].regions[0].blocks = {0, 1};
    steps.push_back(steps[1]);
    steps.back().regions[1].blocks = {0, 1};
    steps.back().waits = {};
    put_together(plan.programs[0], steps);
    EXPECT_THAT(verify(plan, three), Optional(HasSubstr("rank 0: block 1 of the result holds block 0")));
}

TEST(Verifier, finds_a_missing_dependency) {
    for (const std::vector<StepId>& kept : {std::vector<StepId>{0}, std::vector<StepId>{1}}) {
        Plan plan = chain();
        auto steps = take_apart(plan.programs[1]);
        steps[2].waits = kept;
        put_together(plan.programs[1], steps);
        const auto complaint = verify(plan, three);
        EXPECT_THAT(complaint, Optional(HasSubstr("rank 1, step 2 (send, chain)")));
        EXPECT_THAT(complaint, Optional(HasSubstr(kept[0] == 0 ? "scratch block 1" : "scratch block 2")));
    }
}

TEST(Verifier, finds_a_crossed_pair_of_blocking_steps) {
    // Each rank takes only when its own send is complete, and no send is complete before it is taken.
    Plan plan = pair();
    for (Program& program : plan.programs) {
        auto steps = take_apart(program);
        steps[2].waits = {1};
        put_together(program, steps);
    }
    EXPECT_THAT(verify(plan, two), Optional(HasSubstr("deadlock: rank 0, step 1 (send to 1, tag 0) waits for rank 1, "
                                                      "step 2 (recv from 0, tag 0), which can never start")));
}

TEST(Verifier, accepts_blocking_steps_that_do_not_cross) {
    Plan plan = pair();
    auto steps = take_apart(plan.programs[0]);
    steps[2].waits = {1};
    put_together(plan.programs[0], steps);
    EXPECT_EQ(verify(plan, two), std::nullopt);
}

TEST(Verifier, finds_a_step_that_waits_for_a_later_one) {
    Plan plan = pair();
    plan.programs[1].waits[0] = 2;
    EXPECT_THAT(
        verify(plan, two),
        Optional(HasSubstr("rank 1, step 1 (send to 0, tag 0): waits for step 2, which is not an earlier one")));
}

TEST(Verifier, finds_a_write_into_the_callers_input) {
    Plan plan = pair();
    auto steps = take_apart(plan.programs[1]);
    steps.push_back(steps[0]);
    std::swap(steps.back().regions[0], steps.back().regions[1]);
    steps.back().waits = {0, 1};
    put_together(plan.programs[1], steps);
    EXPECT_THAT(verify(plan, two),
                Optional(HasSubstr("rank 1, step 3 (copy, exchange): writes the caller's input, block 1")));
}

TEST(Verifier, finds_scratch_without_room) {
    Plan plan = chain();
    plan.programs[1].scratch = {Blocks(1, 1)};
    EXPECT_THAT(verify(plan, three),
                Optional(HasSubstr(
                    "rank 1, step 0 (recv, chain): touches scratch blocks 2 to 2, which this rank doesn't have")));
}

TEST(Verifier, finds_a_buffer_that_only_the_root_has) {
    Plan plan = chain();
    plan.programs[1].regions[0].buffer = Buffer::recv;
    EXPECT_THAT(
        verify(plan, three),
        Optional(HasSubstr("rank 1, step 0 (recv, chain): touches recv blocks 2 to 2, which this rank doesn't have")));
    Plan input = chain();
    input.programs[2].regions[0].blocks = {1, 1};
    EXPECT_THAT(
        verify(input, three),
        Optional(HasSubstr("rank 2, step 0 (send, chain): touches send blocks 1 to 1, which this rank doesn't have")));
}

TEST(Verifier, finds_what_would_break_with_mpi_in_place) {
    // Rank 0 gets its own block back by message: with MPI_IN_PLACE it would overwrite its input.
    Plan plan = pair();
    auto zero = take_apart(plan.programs[0]);
    auto one = take_apart(plan.programs[1]);
    zero.push_back(zero[2]);
    zero.back().step.tag = 1;
    zero.back().regions[0].blocks = {0, 1};
    zero.back().waits = {0, 1};
    one.push_back(one[1]);
    one.back().step.tag = 1;
    one.back().regions[0].blocks = {0, 1};
    one.back().waits = {2};
    put_together(plan.programs[0], zero);
    put_together(plan.programs[1], one);
    EXPECT_THAT(verify(plan, two), Optional(HasSubstr("rank 0, step 3 (recv, exchange): writes the rank's own block 0 "
                                                      "of the result, which is its input with MPI_IN_PLACE")));
}

TEST(Verifier, finds_a_read_of_what_nobody_wrote) {
    Plan plan = chain();
    plan.programs[1].scratch = {Blocks(0, 3)};
    auto steps = take_apart(plan.programs[1]);
    steps[2].regions[0].blocks = {0, 3};
    put_together(plan.programs[1], steps);
    auto root = take_apart(plan.programs[0]);
    root[0].regions[0].blocks = {0, 3};
    put_together(plan.programs[0], root);
    const auto complaint = verify(plan, three);
    EXPECT_THAT(complaint, Optional(HasSubstr("rank 0, step 0 (recv, chain): writes the rank's own block 0")));
    root[0].regions[0].blocks = {1, 2};
    put_together(plan.programs[0], root);
    steps[1].regions[1].blocks = {0, 1};
    steps[2].regions[0].blocks = {1, 2};
    put_together(plan.programs[1], steps);
    EXPECT_THAT(verify(plan, three),
                Optional(HasSubstr("rank 1, step 2 (send, chain): reads scratch block 1 before anything is there")));
}

TEST(Verifier, finds_a_plan_made_for_another_root_or_job) {
    Plan plan = chain();
    plan.request.root = Rank{2};
    EXPECT_THAT(
        verify(plan, three),
        Optional(HasSubstr("rank 0, step 0 (recv, chain): touches recv blocks 1 to 2, which this rank doesn't have")));
    plan.request.root = Rank{3};
    EXPECT_THAT(verify(plan, three), Optional(HasSubstr("root 3 is outside of a job of 3 ranks")));
    EXPECT_THAT(verify(chain(), two), Optional(HasSubstr("the plan has 3 programs for a job of 2 ranks")));
}

TEST(Verifier, finds_programs_that_do_not_belong_together) {
    Plan exchanged = chain();
    std::swap(exchanged.programs[1], exchanged.programs[2]);
    EXPECT_THAT(verify(exchanged, three), Optional(HasSubstr("program 1 is made for rank 2")));
    Plan mixed = chain();
    mixed.programs[2].order = BlockOrder::topology;
    EXPECT_THAT(verify(mixed, three), Optional(HasSubstr("rank 2 numbers its blocks in another order than rank 0")));
}

TEST(Verifier, finds_a_slice_that_is_none_and_a_slice_that_is_missing) {
    Plan wrong = chain();
    wrong.programs[2].steps[0].slice = {2, 2};
    EXPECT_THAT(verify(wrong, three), Optional(HasSubstr("rank 2, step 0 (send, chain): part 2 of 2 is out of range")));
    Plan half = chain();
    half.programs[0].steps[1].slice = {0, 2};
    EXPECT_THAT(verify(half, three), Optional(HasSubstr("rank 0: block 0 of the result is never written")));
}

TEST(Verifier, finds_two_receives_into_one_place) {
    Plan plan = pair();
    auto zero = take_apart(plan.programs[0]);
    auto one = take_apart(plan.programs[1]);
    zero.push_back(zero[2]);
    one.push_back(one[1]);
    zero.back().step.tag = one.back().step.tag = 1;
    put_together(plan.programs[0], zero);
    put_together(plan.programs[1], one);
    EXPECT_THAT(verify(plan, two),
                Optional(HasSubstr(
                    "rank 0, step 3 (recv, exchange) and step 2 touch recv block 1 and neither waits for the other")));
}

TEST(Verifier, a_gather_writes_nothing_on_ranks_other_than_the_root) {
    Plan plan{{Collective::gather, Rank{0}, 8}, "by hand", {}};
    for (const std::int32_t me : {0, 1}) {
        ProgramBuilder builder(Rank{me}, BlockOrder::rank);
        builder.stage("none");
        builder.copy(Buffer::send, Buffer::recv, Blocks(me, 1), {});
        plan.programs.push_back(builder.finish());
    }
    EXPECT_THAT(verify(plan, two), Optional(HasSubstr("rank 1, step 0 (copy, none): touches recv blocks 1 to 1")));
}

}  // namespace
}  // namespace palmette::plan
