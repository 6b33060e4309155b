// From blocks to addresses and lengths.
#include "palmette/execute/binding.hpp"

#include <gtest/gtest.h>

#include "palmette/collectives/registry.hpp"
#include "support/jobs.hpp"

namespace palmette::execute {
namespace {

using collectives::Spec;
using plan::Buffer;
using plan::Collective;
using plan::StepKind;

plan::Program program_of(const topology::Job& job, Collective collective, const char* spec, std::int32_t rank,
                         std::int64_t bytes) {
    const plan::Request request{collective, plan::Rank{0}, bytes, 1, false, false};
    return collectives::make_program(job, plan::Rank{rank}, request, Spec::parse(spec));
}

TEST(Binding, puts_each_ranks_block_at_its_stride) {
    const topology::Job job = test::job_on("4node", "block", 4);
    Layout layout;
    layout.uniform_bytes = 10;
    layout.stride = 64;
    const BoundProgram root =
        bind(Collective::gather, program_of(job, Collective::gather, "linear", 0, 10), job, layout);
    int received = 0;
    for (const BoundStep& step : root.steps) {
        if (step.kind != StepKind::recv) continue;
        ++received;
        ASSERT_EQ(step.piece_count, 1U);
        const Piece& piece = root.pieces[step.first_piece];
        EXPECT_EQ(piece.buffer, Buffer::recv);
        EXPECT_EQ(piece.offset, 64 * step.peer);
        EXPECT_EQ(piece.bytes, 10);
        EXPECT_EQ(step.staging, -1) << "one piece is sent where it is";
    }
    EXPECT_EQ(received, 3);
}

TEST(Binding, joins_blocks_that_touch_and_stages_those_that_dont) {
    const topology::Job job = test::job_on("8node", "block", 8);
    const plan::Program program = program_of(job, Collective::allgather, "recursive_doubling", 0, 16);
    for (const std::int64_t stride : {16, 32}) {
        Layout layout;
        layout.uniform_bytes = 16;
        layout.stride = stride;
        const BoundProgram bound = bind(Collective::allgather, program, job, layout);
        std::int64_t staged = 0;
        for (const BoundStep& step : bound.steps) staged += plan::is_message(step.kind) && step.staging >= 0;
        EXPECT_EQ(staged > 0, stride != 16);
        EXPECT_EQ(bound.staging_bytes > 0, stride != 16);
    }
}

TEST(Binding, sends_no_message_for_an_empty_block_whose_length_both_ends_know) {
    const topology::Job job = test::job_on("4node", "block", 4);
    const plan::Program program = program_of(job, Collective::gather, "linear", 0, -1);
    const std::vector<std::int64_t> lengths{8, 0, 8, 0}, offsets{0, 8, 8, 16};
    Layout layout;
    layout.recv = {lengths.data(), offsets.data()};
    const BoundProgram bound = bind(Collective::gather, program, job, layout);
    std::vector<std::int32_t> from;
    for (const BoundStep& step : bound.steps)
        if (step.kind == StepKind::recv) from.push_back(step.peer);
    EXPECT_EQ(from, std::vector<std::int32_t>{2});
    EXPECT_EQ(bound.most_requests, 1);
}

TEST(Binding, sends_a_message_of_nothing_where_all_blocks_are_alike) {
    const topology::Job job = test::job_on("4node", "block", 4);
    const BoundProgram bound =
        bind(Collective::barrier, program_of(job, Collective::barrier, "dissemination", 1, 0), job, {});
    EXPECT_GT(bound.most_requests, 0) << "a barrier has nothing else";
    for (const BoundStep& step : bound.steps) EXPECT_EQ(step.bytes, 0);
}

TEST(Binding, counts_the_parts_of_messages_that_are_too_long_for_one) {
    const topology::Job job = test::job_on("2node", "block", 2);
    Layout layout;
    layout.uniform_bytes = 2 * most_message_bytes + 1;
    const plan::Program program = program_of(job, Collective::gather, "linear", 1, layout.uniform_bytes);
    EXPECT_EQ(bind(Collective::gather, program, job, layout).most_requests, 3);
}

TEST(Binding, of_lengths_that_come_again_is_kept) {
    std::vector<std::int64_t> lengths{8, 16}, offsets{0, 8};
    Layout layout;
    layout.recv = {lengths.data(), offsets.data()};
    BoundLengths last;
    EXPECT_FALSE(last.holds(layout, 2));
    last.keep();
    EXPECT_TRUE(last.holds(layout, 2));
    lengths[1] = 24;
    EXPECT_FALSE(last.holds(layout, 2));
    last.keep();
    EXPECT_TRUE(last.holds(layout, 2));
    layout.by_address_from = 1;
    EXPECT_FALSE(last.holds(layout, 2));
}

}  // namespace
}  // namespace palmette::execute
