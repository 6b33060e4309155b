#include "palmette/collectives/topology_tree.hpp"

#include <gmock/gmock.h>

#include "support/jobs.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Interval;

std::vector<LevelShape> all_levels(const Job& job, TreeShape shape) {
    std::vector<LevelShape> out;
    for (std::size_t i = 0; i < job.levels().size(); ++i) out.push_back({i, shape});
    return out;
}

/// Parents and children agree, and below the root is everything.
void expect_tree(const Job& job, Position root, const std::vector<LevelShape>& levels, TreeShape top) {
    const Interval range{0, job.size()};
    const TopologyTree tree(job, range, root, levels, top);
    for (std::int32_t p = 0; p < job.size(); ++p) {
        const TreeNeighbours near = tree.of({p});
        ASSERT_EQ(near.parent.has_value(), p != root.value);
        Blocks below(p, 1);
        for (const TreeLink& child : near.children) {
            const TreeNeighbours of_child = tree.of(child.peer);
            ASSERT_TRUE(of_child.parent);
            ASSERT_EQ(of_child.parent->peer, Position{p});
            ASSERT_EQ(of_child.parent->blocks, child.blocks);
            ASSERT_EQ(of_child.parent->stage, child.stage);
            below.unite(child.blocks);
        }
        ASSERT_EQ(below, near.parent ? near.parent->blocks : Blocks(0, job.size()));
    }
}

TEST(TopologyTree, parents_and_children_agree_on_every_machine_for_every_root_and_shape) {
    for (const std::string& machine : test::machines())
        for (const std::int32_t p : {1, 2, 7, 16, 33}) {
            const Job job = test::job_on(machine, "random:8", p);
            for (std::int32_t root = 0; root < p; ++root)
                for (const std::int32_t radix : {0, 2, 3})
                    expect_tree(job, {root}, all_levels(job, TreeShape{radix}), TreeShape{radix == 0 ? 2 : 0});
        }
}

TEST(TopologyTree, the_root_leads_every_group_on_its_path_and_other_groups_are_led_by_their_first) {
    const Job job = test::job_on("2leaf:2node:2core");
    const TopologyTree tree(job, {0, 8}, {3}, all_levels(job, TreeShape{0}), TreeShape{0});
    EXPECT_EQ(tree.of({2}).parent->peer, Position{3});
    EXPECT_EQ(tree.of({2}).parent->stage, "node");
    EXPECT_EQ(tree.of({0}).parent->peer, Position{3});
    EXPECT_EQ(tree.of({0}).parent->stage, "leaf");
    EXPECT_EQ(tree.of({4}).parent->peer, Position{3});
    EXPECT_EQ(tree.of({4}).parent->stage, "top");
    EXPECT_EQ(tree.of({4}).parent->blocks, Blocks(4, 4));
    EXPECT_EQ(tree.of({6}).parent->peer, Position{4});
}

TEST(TopologyTree, a_star_serves_the_farthest_children_first) {
    const Job job = test::job_on("2leaf:2node:2core");
    const TopologyTree star(job, {0, 8}, {2}, {}, TreeShape{0});
    std::vector<std::int32_t> children;
    for (const TreeLink& child : star.of({2}).children) children.push_back(child.peer.value);
    EXPECT_THAT(children, testing::ElementsAre(4, 5, 6, 7, 0, 1, 3));
}

TEST(TopologyTree, a_tree_of_a_part_of_the_positions_stays_inside) {
    const Job job = test::job_on("2leaf:3node:4core");
    const Interval range{5, 9};
    const TopologyTree tree(job, range, {7}, all_levels(job, TreeShape{2}), TreeShape{2});
    Blocks all;
    for (std::int64_t p = range.first; p < range.end(); ++p) {
        const TreeNeighbours near = tree.of({static_cast<std::int32_t>(p)});
        for (const TreeLink& child : near.children) {
            EXPECT_GE(child.peer.value, range.first);
            EXPECT_LT(child.peer.value, range.end());
            if (p == 7) all.unite(child.blocks);
        }
    }
    all.insert({7, 1});
    EXPECT_EQ(all, Blocks(range.first, range.count));
}

}  // namespace
}  // namespace palmette::collectives
