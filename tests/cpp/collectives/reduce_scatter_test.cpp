// What the reduce-scatters must cost, exactly.
#include <gmock/gmock.h>

#include "palmette/base/text.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/verify.hpp"
#include "support/crossings.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives::reduce_scatter_tests {
namespace {

using plan::PlanCount;
using test::job_on;

Request request_of(std::int64_t block, bool shared = false) {
    Request request{Collective::reduce_scatter, Rank{0}, block};
    request.element_bytes = 8;
    request.shared_memory = shared;
    return request;
}

plan::Plan plan_of(const Job& job, const std::string& text, std::int64_t block = 8, bool shared = false) {
    return make_plan(job, request_of(block, shared), Spec::parse(text));
}

PlanCount count(const Job& job, const std::string& text, std::int64_t block = 8, bool shared = false) {
    return plan::count(plan_of(job, text, block, shared), job, {block});
}

plan::LevelCount level(const PlanCount& count, std::string_view name) {
    for (const plan::LevelCount& one : count.levels)
        if (one.level == name) return one;
    throw std::runtime_error("no such level");
}

TEST(ReduceScatter, sends_p_minus_1_blocks_a_rank_with_every_flat_method) {
    for (const std::int32_t p : {2, 4, 8, 16, 32})
        for (const char* text : {"ring", "recursive_halving", "pairwise", "direct"})
            for (const plan::LinkCount& link : level(count(Job::flat(p), text), "node").links)
                EXPECT_EQ(link.bytes_out, 8 * (p - 1)) << text << ' ' << p;
}

TEST(ReduceScatter, takes_p_minus_1_or_lg_p_or_one_message_in_a_row) {
    EXPECT_EQ(count(Job::flat(32), "ring").longest_chain, 31);
    EXPECT_EQ(count(Job::flat(32), "recursive_halving").longest_chain, 5);
    EXPECT_EQ(count(Job::flat(33), "recursive_halving").longest_chain, 6) << "one more to fold";
    EXPECT_EQ(count(Job::flat(32), "direct").longest_chain, 1);
    EXPECT_EQ(count(Job::flat(32), "recursive_halving").messages, 32 * 5);
    EXPECT_EQ(count(Job::flat(32), "direct").messages, 32 * 31);
}

TEST(ReduceScatterRing, carries_out_of_every_group_exactly_what_the_others_must_have) {
    for (const std::string& machine : test::machines())
        for (const std::string& placement : test::placements()) {
            const Job job = job_on(machine, placement);
            const PlanCount nested = count(job, "ring", 8);
            for (std::size_t l = 0; l < job.levels().size(); ++l) {
                const topology::Partition& groups = job.levels()[l].groups;
                for (std::int32_t g = 0; g < groups.count(); ++g)
                    EXPECT_EQ(nested.levels[l].links[static_cast<std::size_t>(g)].bytes_out,
                              8 * (job.size() - groups.size_of(g)))
                        << machine << ' ' << placement << ' ' << nested.levels[l].level << g;
            }
        }
}

TEST(ReduceScatterRecursiveHalving, sends_its_large_messages_to_near_ranks) {
    const Job job = job_on("2leaf:4node:2core");
    const PlanCount made = count(job, "recursive_halving");
    // Of 15 blocks that a rank sends 8 go to its node, 4 and 2 inside of the leaf and one across.
    EXPECT_EQ(level(made, "leaf").bytes, 16 * 1 * 8);
    EXPECT_EQ(level(made, "node").bytes, 16 * (4 + 2 + 1) * 8);
}

TEST(ReduceScatterLeaders, send_each_block_once_between_each_two_nodes_for_any_number_of_lanes) {
    for (const bool cyclic : {false, true})
        for (const char* lanes : {"1", "4", "all"})
            for (const bool shared : {false, true}) {
                const Job job = Job::regular({{"node", 8}, {"core", 16}}, cyclic);
                const PlanCount made = count(job, base::cat("leaders:inside=shared,leaders=", lanes), 8, shared);
                const std::int64_t number = std::string(lanes) == "all" ? 16 : std::stoi(lanes);
                for (const plan::LinkCount& link : level(made, "node").links) {
                    EXPECT_EQ(link.bytes_out, 7 * 16 * 8) << "16 blocks for each of 7 nodes";
                    EXPECT_EQ(link.messages_out, 7 * number);
                }
                if (shared) {
                    EXPECT_EQ(made.messages, level(made, "node").messages);
                }
            }
}

TEST(ReduceScatterSpineCrossings, are_one_in_a_row_with_direct_and_with_leaders) {
    for (const char* placement : {"block", "random:1"}) {
        const Job job = job_on("3leaf:3+3+2node:2core", placement);
        for (const char* text : {"direct", "leaders", "leaders:level=leaf", "leaders:leaders=2"})
            EXPECT_EQ(test::crossings_in_a_row(plan_of(job, text), job, "leaf"), 1) << text << ' ' << placement;
        EXPECT_EQ(test::crossings_in_a_row(plan_of(job, "recursive_halving"), job, "leaf"), 3) << placement;
    }
}

TEST(ReduceScatterScratch, is_bounded) {
    const Job job = Job::flat(64);
    const auto blocks = [&](const char* text) {
        std::int64_t most = 0;
        for (const Program& program : plan_of(job, text).programs) {
            std::int64_t sum = 0;
            for (const plan::Blocks& layer : program.scratch) sum += layer.count();
            most = std::max(most, sum);
        }
        return most;
    };
    EXPECT_LE(blocks("pairwise"), 3) << "two on their way, and what comes from later ranks where order counts";
    EXPECT_LE(blocks("direct"), 33);
    EXPECT_LE(blocks("ring"), 64);
    EXPECT_LE(blocks("recursive_halving"), 32 + 16 + 32);
}

}  // namespace
}  // namespace palmette::collectives::reduce_scatter_tests
