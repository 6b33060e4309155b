// Broadcasts by leaders of chunks: what they put on links, who sends across, and what they refuse.
#include <gmock/gmock.h>

#include <set>

#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives::bcast_leaders_tests {
namespace {

using plan::StepKind;
using test::job_on;
using testing::HasSubstr;

constexpr const char* lab = "3leaf:3+3+2node:2core";
constexpr std::int64_t vector_bytes = 12'000;

plan::Plan plan_of(const Job& job, std::string_view text, std::int32_t root) {
    return make_plan(job, {Collective::bcast, Rank{root}, vector_bytes}, Spec::parse(text));
}

std::vector<plan::LinkCount> links_of(const Job& job, std::string_view level, const plan::Plan& plan) {
    for (const plan::LevelCount& one : plan::count(plan, job, {vector_bytes}).levels)
        if (one.level == level) return one.links;
    throw std::runtime_error("no such level");
}

std::int32_t group_of(const Job& job, std::string_view level, std::int32_t rank) {
    return job.levels()[*job.find_level(level)].groups.group_of(job.position_of(Rank{rank}).value);
}

TEST(BcastLeaders, every_leaf_and_node_hears_the_vector_once_and_the_other_leaves_share_what_goes_on) {
    for (const char* placement : {"block", "random:1"})
        for (const std::int32_t root : {0, 5, 15}) {
            const Job job = job_on(lab, placement);
            const plan::Plan made = plan_of(job, "leaders:leaders=6,level=leaf,inside=chain", root);
            const auto leaves = links_of(job, "leaf", made), nodes = links_of(job, "node", made);
            for (std::int32_t leaf = 0; leaf < 3; ++leaf) {
                const bool home = leaf == group_of(job, "leaf", root);
                EXPECT_EQ(leaves[static_cast<std::size_t>(leaf)].bytes_in, home ? 0 : vector_bytes);
                EXPECT_EQ(leaves[static_cast<std::size_t>(leaf)].bytes_out, home ? vector_bytes : vector_bytes / 2);
            }
            for (std::int32_t node = 0; node < 8; ++node)
                EXPECT_EQ(nodes[static_cast<std::size_t>(node)].bytes_in,
                          node == group_of(job, "node", root) ? 0 : vector_bytes)
                    << node;
        }
}

TEST(BcastLeaders, all_ranks_of_the_roots_leaf_send_across_and_each_node_to_both_other_leaves) {
    const Job job = job_on(lab);
    const plan::Plan made = plan_of(job, "leaders:leaders=6,level=leaf", 1);
    std::set<std::int32_t> senders;
    std::set<std::pair<std::int32_t, std::int32_t>> ways;  // from a node to a leaf
    for (std::int32_t rank = 0; rank < 6; ++rank)
        for (const plan::Step& step : made.programs[static_cast<std::size_t>(rank)].steps)
            if (step.kind == StepKind::send && step.peer.value >= 6) {
                senders.insert(rank);
                ways.emplace(group_of(job, "node", rank), group_of(job, "leaf", step.peer.value));
            }
    EXPECT_EQ(senders.size(), 6U);
    EXPECT_EQ(ways.size(), 6U);
}

TEST(BcastLeaders, cuts_the_vector_into_whole_rounds_of_chunks) {
    const Job job = job_on(lab);
    const auto slices = [&](const char* text) { return plan_of(job, text, 0).programs[15].steps.front().slice.of; };
    EXPECT_EQ(slices("leaders:leaders=6,level=leaf"), 6);
    EXPECT_EQ(slices("leaders:leaders=6,level=leaf,segment=1500"), 12) << "8 segments, rounded up to two rounds";
    EXPECT_EQ(slices("leaders:leaders=6,level=leaf,segment=8"), 60) << "there are 64 slices at most";
    EXPECT_EQ(slices("leaders:leaders=all,level=leaf"), 4) << "the smallest leaf has four ranks";
}

TEST(BcastLeaders, says_what_it_can_not_do) {
    const auto refusal = [](const char* text) {
        const Job job = job_on(lab);
        return test::error_of([&] { plan_of(job, text, 0); });
    };
    EXPECT_THAT(refusal("leaders:leaders=65"), HasSubstr("at most 64 leaders, not 65"));
    EXPECT_THAT(refusal("leaders:inside=shared"), HasSubstr("'shared' is no tree"));
    EXPECT_THAT(refusal("leaders:between=ring"), HasSubstr("'ring' is no tree"));
    EXPECT_THAT(refusal("leaders:top=chain"), HasSubstr("key 'top' is unknown"));
}

}  // namespace
}  // namespace palmette::collectives::bcast_leaders_tests
