#include "palmette/collectives/trees/laned_tree.hpp"

#include <gmock/gmock.h>

#include <set>

#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/verify.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives {
namespace {

using testing::HasSubstr;

TEST(LanedTree, parents_and_children_agree_and_all_lanes_have_the_root_of_the_call) {
    for (const std::string& machine : test::machines())
        for (const std::int32_t p : {1, 2, 7, 16, 33}) {
            const Job job = test::job_on(machine, "random:8", p);
            const std::size_t node = *job.find_level("node");
            for (std::int32_t root = 0; root < p; ++root)
                for (const TreeShape inside : {TreeShape{0}, TreeShape{2}, TreeShape::chain()}) {
                    const TopologyTree tree(job, {0, p}, {root}, {{node, inside}}, TreeShape{3});
                    for (const std::int32_t lane : {0, 1, 3}) {
                        std::int32_t links = 0;
                        for (std::int32_t at = 0; at < p; ++at) {
                            const TreeNeighbours near = lane_links(job, tree, {root}, lane, {at});
                            ASSERT_EQ(near.parent.has_value(), at != root) << machine << " " << p << " " << at;
                            for (const TreeLink& child : near.children) {
                                const TreeNeighbours of_child = lane_links(job, tree, {root}, lane, child.peer);
                                ASSERT_TRUE(of_child.parent);
                                ASSERT_EQ(of_child.parent->peer, Position{at});
                                ASSERT_EQ(of_child.parent->shared, child.shared);
                                ++links;
                            }
                        }
                        ASSERT_EQ(links, p - 1);
                    }
                }
        }
}

TEST(LanedTree, sends_between_nodes_by_other_ranks_in_every_lane) {
    const Job job = test::job_on("2leaf:3node:4core");
    const TopologyTree tree(job, {0, 24}, {5}, {{*job.find_level("node"), TreeShape{0}}}, TreeShape{0});
    std::set<std::pair<std::int32_t, std::int32_t>> pairs;
    std::set<std::int32_t> senders;
    for (std::int32_t lane = 0; lane < 4; ++lane)
        for (std::int32_t at = 0; at < 24; ++at)
            for (const TreeLink& child : lane_links(job, tree, {5}, lane, {at}).children)
                if (child.peer.value / 4 != at / 4) {
                    EXPECT_TRUE(pairs.emplace(at, child.peer.value).second);
                    senders.insert(at);
                }
    EXPECT_EQ(pairs.size(), 4U * 5);
    EXPECT_THAT(senders, testing::ElementsAre(4, 5, 6, 7));
}

TEST(LanedBcast, sends_the_bytes_of_one_tree_and_what_the_root_s_node_hands_round) {
    const Job job = test::job_on("2leaf:3node:4core");
    const auto crossing = [&](std::string_view text) {
        const plan::Plan plan = make_plan(job, {Collective::bcast, Rank{5}, 4096}, Spec::parse(text));
        EXPECT_EQ(plan::verify(plan, job), std::nullopt) << text;
        std::int64_t bytes = 0;
        for (const plan::LevelCount& level : plan::count(plan, job, {4096}).levels)
            if (level.level == "node")
                for (const plan::LinkCount& link : level.links) bytes += link.bytes_out;
        return bytes;
    };
    EXPECT_EQ(crossing("by_topology:node=linear,top=linear,lanes=4"), 5 * 4096);
    EXPECT_EQ(crossing("by_topology:node=linear,top=linear"), 5 * 4096);
}

TEST(LanedBcast, says_what_lanes_can_not_be) {
    const Job job = test::job_on("2leaf:3node:4core");
    const auto refusal = [&](Collective collective, std::string_view text) {
        return test::error_of([&] { make_program(job, Rank{0}, {collective, Rank{0}, 64}, Spec::parse(text)); });
    };
    EXPECT_THAT(refusal(Collective::bcast, "by_topology:node=linear,lanes=3"),
                HasSubstr("lanes=3 is not 1, 2, 4, 8 or 16"));
    EXPECT_THAT(refusal(Collective::bcast, "by_topology:node=linear,lanes=2,relays=2"), HasSubstr("one of them"));
    EXPECT_THAT(refusal(Collective::reduce, "by_topology:node=linear,lanes=2"), HasSubstr("'lanes' is unknown"));
}

}  // namespace
}  // namespace palmette::collectives
