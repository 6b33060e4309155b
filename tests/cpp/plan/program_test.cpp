#include "palmette/plan/program.hpp"

#include <gmock/gmock.h>

#include "palmette/plan/plan.hpp"
#include "support/errors.hpp"

namespace palmette::plan {
namespace {

Program example() {
    ProgramBuilder builder(Rank{1}, BlockOrder::topology);
    builder.stage("gather to node leader");
    builder.reserve_scratch(Blocks(1, 2));
    const StepId arrived = builder.recv(Rank{2}, 0, Buffer::scratch, Blocks(2, 1), {});
    builder.stage("copy own block");
    const StepId own = builder.copy(Buffer::send, Buffer::scratch, Blocks(1, 1), {});
    builder.stage("gather to node leader");
    builder.send(Rank{0}, 3, Buffer::scratch, Blocks(1, 2), {arrived, own}, {0, 2});
    return builder.finish();
}

TEST(Slices, of_a_block_add_up_to_its_length_and_do_not_overlap) {
    for (const std::int64_t length : {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{64},
                                      std::int64_t{1000}, std::int64_t{1} << 61})
        for (std::uint16_t of = 1; of <= 64; ++of) {
            std::int64_t end = 0;
            for (std::uint16_t i = 0; i < of; ++i) {
                ASSERT_EQ(slice_begin({i, of}, length), end);
                ASSERT_GE(slice_length({i, of}, length), 0);
                end += slice_length({i, of}, length);
            }
            ASSERT_EQ(end, length);
        }
}

TEST(Program, prints_one_line_a_step) {
    EXPECT_EQ(to_text(example()),
              "0 recv from 2 tag 0: scratch[2]\n"
              "1 copy send[1] to scratch[1]\n"
              "2 send to 0 tag 3: scratch[1..2] part 1/2 after 0,1\n");
}

TEST(Program, a_stage_named_again_is_the_same_stage) {
    const Program program = example();
    EXPECT_THAT(program.stages, testing::ElementsAre("gather to node leader", "copy own block"));
    EXPECT_EQ(program.steps[0].stage, program.steps[2].stage);
}

TEST(Program, equal_lists_of_blocks_in_a_row_are_kept_once) {
    ProgramBuilder builder(Rank{0}, BlockOrder::topology);
    builder.stage("distribute");
    Blocks scattered(0, 2);
    scattered.insert({5, 1});
    for (std::int32_t peer = 1; peer < 4; ++peer) builder.send(Rank{peer}, 0, Buffer::recv, scattered, {});
    builder.send(Rank{4}, 0, Buffer::scratch, scattered, {});
    builder.send(Rank{5}, 0, Buffer::scratch, Blocks(0, 2), {});
    const Program program = builder.finish();
    EXPECT_EQ(program.regions.size(), 5U);
    EXPECT_EQ(to_text(program),
              "0 send to 1 tag 0: recv[0..1] recv[5]\n"
              "1 send to 2 tag 0: recv[0..1] recv[5]\n"
              "2 send to 3 tag 0: recv[0..1] recv[5]\n"
              "3 send to 4 tag 0: scratch[0..1] scratch[5]\n"
              "4 send to 5 tag 0: scratch[0..1]\n");
}

TEST(Program, json_holds_every_step) {
    EXPECT_EQ(
        to_json(example()).dump(),
        R"({"rank": 1, "stages": ["gather to node leader", "copy own block"], "scratch": [[[1, 2]]], "steps": [)"
        R"({"kind": "recv", "stage": 0, "peer": 2, "tag": 0, "regions": [["scratch", 2, 1]], "after": []}, )"
        R"({"kind": "copy", "stage": 1, "from": [["send", 1, 1]], "to": [["scratch", 1, 1]], "after": []}, )"
        R"({"kind": "send", "stage": 0, "peer": 0, "tag": 3, "regions": [["scratch", 1, 2]], "slice": [0, 2], "after": [0, 1]}]})");
}

TEST(Collectives, have_names_that_read_back) {
    for (const Collective c : {Collective::gather, Collective::scatter, Collective::allgather})
        EXPECT_EQ(collective_named(name_of(c)), c);
    EXPECT_EQ(test::error_of([] { collective_named("broadcast"); }),
              "collective 'broadcast' is unknown: there are gather, scatter, allgather, bcast, reduce, allreduce, "
              "reduce_scatter, "
              "alltoall, barrier, scan and exscan");
}

}  // namespace
}  // namespace palmette::plan
