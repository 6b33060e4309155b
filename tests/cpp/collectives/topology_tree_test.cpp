#include "palmette/collectives/trees/topology_tree.hpp"

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
void expect_tree(const Job& job, Position root, const std::vector<LevelShape>& levels, TreeShape top,
                 Numbering numbering = Numbering::nested) {
    const Interval range{0, job.size()};
    const TopologyTree tree(job, range, root, levels, top, numbering);
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
            if (numbering == Numbering::sides) {
                ASSERT_EQ(child.blocks.intervals().size(), 1U);
            }
        }
        ASSERT_EQ(below, near.parent ? near.parent->blocks : Blocks(0, job.size()));
    }
}

TEST(TopologyTree, parents_and_children_agree_on_every_machine_for_every_root_and_shape) {
    for (const std::string& machine : test::machines())
        for (const std::int32_t p : {1, 2, 7, 16, 33}) {
            const Job job = test::job_on(machine, "random:8", p);
            for (std::int32_t root = 0; root < p; ++root)
                for (const Numbering numbering : {Numbering::nested, Numbering::sides})
                    for (const TreeShape shape :
                         {TreeShape{0}, TreeShape{2}, TreeShape{3}, TreeShape::chain(), TreeShape::k_ary(2)}) {
                        const TreeShape top = shape.is_star() ? TreeShape{2} : TreeShape{0};
                        expect_tree(job, {root}, all_levels(job, shape), top, numbering);
                        expect_tree(job, {root}, {}, shape, numbering);
                    }
        }
}

TEST(TopologyTree, a_chain_leaves_no_group_twice_wherever_it_begins) {
    for (const std::string& machine : test::machines()) {
        const Job job = test::job_on(machine, "random:8", 33);
        for (std::int32_t root = 0; root < job.size(); ++root) {
            const TopologyTree chain(job, {0, job.size()}, {root}, {}, TreeShape::chain());
            std::vector<std::vector<int>> left(job.levels().size());
            for (std::size_t l = 0; l < left.size(); ++l)
                left[l].resize(static_cast<std::size_t>(job.levels()[l].groups.count()));
            for (std::int32_t p = 0; p < job.size(); ++p)
                for (const TreeLink& child : chain.of({p}).children)
                    for (std::size_t l = 0; l < left.size(); ++l) {
                        const topology::Partition& groups = job.levels()[l].groups;
                        if (groups.group_of(p) != groups.group_of(child.peer.value)) {
                            ASSERT_EQ(++left[l][static_cast<std::size_t>(groups.group_of(p))], 1) << machine;
                        }
                    }
        }
    }
}

TEST(TopologyTree, two_sides_meet_at_the_root) {
    const Job job = Job::flat(8);
    const TopologyTree tree(job, {0, 8}, {5}, {}, TreeShape{2}, Numbering::sides);
    std::vector<std::int32_t> children;
    for (const TreeLink& child : tree.of({5}).children) children.push_back(child.peer.value);
    EXPECT_THAT(children, testing::ElementsAre(7, 6, 1, 3, 4));
    EXPECT_EQ(tree.of({1}).parent->blocks, Blocks(0, 2));
}

TEST(TopologyTree, links_inside_of_a_shared_level_are_marked) {
    const Job job = test::job_on("2node:2socket:2core");
    const TopologyTree tree(job, {0, 8}, {0}, {{0, {0, TreeShape::Kind::nomial, true}}, {1, TreeShape{0}}}, {0});
    const TreeNeighbours near = tree.of({0});
    ASSERT_EQ(near.children.size(), 3U);
    EXPECT_FALSE(near.children[0].shared) << "4, across the top";
    EXPECT_TRUE(near.children[1].shared) << "2, leader of the other socket";
    EXPECT_FALSE(near.children[2].shared) << "1";
    EXPECT_TRUE(tree.of({2}).parent->shared);
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
