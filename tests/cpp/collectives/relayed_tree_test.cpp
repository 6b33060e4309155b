#include "palmette/collectives/trees/relayed_tree.hpp"

#include <gmock/gmock.h>

#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using testing::HasSubstr;
using testing::Optional;

TEST(RelayedTree, parents_children_and_blocks_agree_on_every_machine_for_every_root) {
    for (const std::string& machine : test::machines())
        for (const std::int32_t p : {1, 2, 7, 16, 33}) {
            const Job job = test::job_on(machine, "random:8", p);
            const std::size_t node = *job.find_level("node");
            for (std::int32_t root = 0; root < p; ++root)
                for (const std::int32_t relays : {2, 3, 99})
                    for (const TreeShape top : {TreeShape{0}, TreeShape{3}}) {
                        const TopologyTree leaders(job, {0, p}, {root}, {{node, TreeShape{2}}}, top);
                        const RelayedTree tree(job, leaders, {root}, relays, top.is_star());
                        for (std::int32_t at = 0; at < p; ++at) {
                            const TreeNeighbours near = tree.of({at});
                            ASSERT_EQ(near.parent.has_value(), at != root);
                            Blocks below(at, 1);
                            for (const TreeLink& child : near.children) {
                                const TreeNeighbours of_child = tree.of(child.peer);
                                ASSERT_TRUE(of_child.parent);
                                ASSERT_EQ(of_child.parent->peer, Position{at});
                                ASSERT_EQ(of_child.parent->blocks, child.blocks);
                                below.unite(child.blocks);
                            }
                            ASSERT_EQ(below, near.parent ? near.parent->blocks : Blocks(0, p));
                        }
                    }
        }
}

TEST(RelayedTree, spreads_a_leaders_messages_to_other_nodes_evenly_and_the_leader_comes_last) {
    const Job job = test::job_on("9node:4core");
    const TopologyTree leaders(job, {0, 36}, {0}, {{0, TreeShape{0}}}, TreeShape{0});
    const RelayedTree tree(job, leaders, {0}, 4, true);
    const auto outside = [&](std::int32_t position) {
        std::vector<std::int32_t> nodes;
        for (const TreeLink& child : tree.of({position}).children)
            if (child.peer.value >= 4) nodes.push_back(child.peer.value / 4);
        return nodes;
    };
    EXPECT_THAT(outside(1), testing::ElementsAre(1, 5));
    EXPECT_THAT(outside(2), testing::ElementsAre(2, 6));
    EXPECT_THAT(outside(3), testing::ElementsAre(3, 7));
    EXPECT_THAT(outside(0), testing::ElementsAre(4, 8));
    EXPECT_EQ(tree.of({24}).parent->peer, Position{2});
}

TEST(RelayedTree, sends_as_many_messages_between_nodes_as_leaders_do) {
    const Job job = test::job_on("2leaf:3node:4core");
    const Request request{Collective::bcast, Rank{5}, 64};
    const auto messages = [&](std::string_view text) {
        const plan::PlanCount made = plan::count(make_plan(job, request, Spec::parse(text)), job, {64});
        std::int64_t out = 0;
        for (const plan::LevelCount& level : made.levels)
            if (level.level == "node")
                for (const plan::LinkCount& link : level.links) out += link.messages_out;
        return out;
    };
    EXPECT_EQ(messages("by_topology:node=linear,top=linear,relays=all"), 5);
    EXPECT_EQ(messages("by_topology:node=linear,top=linear"), 5);
}

TEST(RelayedTree, needs_leaders_of_nodes_and_an_operation_that_commutes) {
    const Job job = test::job_on("2leaf:3node:4core");
    Request request{Collective::reduce, Rank{0}, 64};
    const auto reason = [&](std::string_view text) {
        return algorithm_named(request.collective, "by_topology").refuse(job, request, Spec::parse(text));
    };
    EXPECT_THAT(reason("by_topology:leaf=linear,relays=2"), Optional(HasSubstr("add node=SHAPE")));
    EXPECT_EQ(reason("by_topology:node=linear,relays=2"), std::nullopt);
    request.ordered = true;
    EXPECT_THAT(reason("by_topology:node=linear,relays=2"), Optional(HasSubstr("leave out relays")));
    EXPECT_THAT(test::error_of([&] { reason("by_topology:node=linear,relays=0"); }), HasSubstr("relays"));
}

}  // namespace
}  // namespace palmette::collectives
