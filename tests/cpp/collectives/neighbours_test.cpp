// Plans of neighbourhood collectives: every rank makes its own from what its group has exchanged, and all together are
// proved and counted.
#include <gtest/gtest.h>

#include "palmette/plan/count.hpp"
#include "palmette/plan/verify.hpp"
#include "support/edit_program.hpp"
#include "support/errors.hpp"
#include "support/neighbourhoods.hpp"

namespace palmette::collectives {
namespace {

using namespace palmette::test;
using topology::Job;

NeighbourRoute route_over(const Job& job, const std::vector<std::string>& levels) {
    NeighbourRoute route;
    for (const std::string& level : levels)
        if (const auto index = job.find_level(level)) route.levels.push_back(*index);
    return route;
}

const std::vector<std::vector<std::string>>& all_levels() {
    static const std::vector<std::vector<std::string>> levels{{}, {"node"}, {"leaf"}, {"leaf", "node"}};
    return levels;
}

std::vector<Job> jobs() {
    std::vector<Job> out{Job::flat(5), Job::regular({{"leaf", 3}, {"node", 2}, {"core", 4}}),
                         Job::regular({{"leaf", 2}, {"node", 3}, {"core", 2}}, true)};
    // Uneven: 1, 2 and 4 ranks a node, ranks out of order.
    out.push_back(
        Job::from_groups({"leaf", "node"}, {{1, 5}, {0, 1}, {1, 4}, {0, 2}, {1, 4}, {0, 2}, {1, 5}, {1, 5}, {1, 5}}));
    return out;
}

/// Bytes and messages that cross a level, and all of both.
struct Crossing {
    std::int64_t messages, bytes, messages_at_node, bytes_at_node, messages_at_leaf, bytes_at_leaf;
};

Crossing crossing_of(const plan::Plan& plan, const Job& job) {
    const plan::PlanCount count = plan::count(plan, job, {8});
    Crossing out{count.messages, count.bytes, 0, 0, 0, 0};
    for (const plan::LevelCount& level : count.levels) {
        if (level.level == "node") out.messages_at_node = level.messages, out.bytes_at_node = level.bytes;
        if (level.level == "leaf") out.messages_at_leaf = level.messages, out.bytes_at_leaf = level.bytes;
    }
    return out;
}

TEST(NeighbourPlans, of_random_patterns_are_proved_on_every_job_over_every_level) {
    for (const Job& job : jobs())
        for (std::uint64_t seed = 0; seed < 12; ++seed) {
            const AllNeighbours all = random_neighbours(job.size(), seed % 3 == 0 ? 2 : 9, seed);
            for (const auto& levels : all_levels())
                for (const bool alltoall : {true, false})
                    for (const std::int32_t from : {1, 2, 4}) {
                        NeighbourRoute route = route_over(job, levels);
                        route.combine_from = from;
                        const plan::Plan plan = neighbour_plan(all, job, alltoall, route);
                        const auto complaint = plan::verify(plan, job);
                        ASSERT_FALSE(complaint) << job.size() << " ranks, seed " << seed << ": " << *complaint;
                    }
        }
}

TEST(NeighbourPlans, of_a_halo_with_parallel_and_self_edges_are_proved) {
    const Job job = Job::regular({{"leaf", 2}, {"node", 4}, {"core", 2}});
    for (const AllNeighbours& all : {halo_27(4, 2, 2), halo_27(16, 1, 1)})
        for (const auto& levels : all_levels())
            for (const bool alltoall : {true, false}) {
                const auto complaint = plan::verify(neighbour_plan(all, job, alltoall, route_over(job, levels)), job);
                ASSERT_FALSE(complaint) << *complaint;
            }
}

TEST(NeighbourPlans, of_grids_are_proved_open_and_closed_and_where_both_neighbours_are_one_rank) {
    const Job job = Job::regular({{"leaf", 2}, {"node", 3}, {"core", 2}});
    for (const bool periodic : {false, true})
        for (const AllNeighbours& all : {grid(6, 2, periodic), grid(12, 1, periodic), grid(3, 4, periodic)})
            for (const auto& levels : all_levels())
                for (const bool alltoall : {true, false}) {
                    const plan::Plan plan = neighbour_plan(all, job, alltoall, route_over(job, levels));
                    const auto complaint = plan::verify(plan, job);
                    ASSERT_FALSE(complaint) << *complaint;
                }
}

TEST(NeighbourPlans, without_edges_have_no_steps) {
    const Job job = Job::regular({{"node", 2}, {"core", 2}});
    const AllNeighbours all(4);
    const plan::Plan plan = neighbour_plan(all, job, true, route_over(job, {"node"}));
    for (const plan::Program& program : plan.programs) EXPECT_TRUE(program.steps.empty());
    EXPECT_FALSE(plan::verify(plan, job));
}

TEST(NeighbourPlans, leave_ranks_without_edges_in_a_pair_alone) {
    // Relays are among those that have edges: sizes of a rank without neighbours mean nothing.
    const Job job = Job::regular({{"node", 3}, {"core", 4}});
    AllNeighbours all(12);
    for (const std::int32_t source : {1, 2})
        for (const std::int32_t target : {5, 6}) connect(all, source, target);
    const plan::Plan plan = neighbour_plan(all, job, true, route_over(job, {"node"}));
    ASSERT_FALSE(plan::verify(plan, job));
    for (std::size_t r = 0; r < plan.programs.size(); ++r)
        EXPECT_EQ(plan.programs[r].steps.empty(), all[r].sources.empty() && all[r].targets.empty()) << "rank " << r;
    EXPECT_EQ(crossing_of(plan, job).messages_at_node, 1);
}

TEST(NeighbourPlans, send_one_message_between_two_nodes_and_an_allgathers_block_once) {
    const Job job = Job::regular({{"node", 2}, {"core", 4}});
    AllNeighbours all(8);
    for (std::int32_t s = 0; s < 4; ++s)
        for (std::int32_t t = 4; t < 8; ++t) connect(all, s, t);
    const NeighbourRoute route = route_over(job, {"node"});
    const Crossing alltoall = crossing_of(neighbour_plan(all, job, true, route), job);
    const Crossing allgather = crossing_of(neighbour_plan(all, job, false, route), job);
    EXPECT_EQ(alltoall.messages_at_node, 1);
    EXPECT_EQ(alltoall.bytes_at_node, 16 * 8);
    EXPECT_EQ(allgather.messages_at_node, 1);
    EXPECT_EQ(allgather.bytes_at_node, 4 * 8) << "each of the four blocks once";
}

TEST(NeighbourPlans, that_the_verifier_should_refuse_are_refused) {
    const Job job = Job::regular({{"node", 2}, {"core", 3}});
    const AllNeighbours all = random_neighbours(6, 9, 3);
    for (const bool alltoall : {true, false}) {
        const plan::Plan right = neighbour_plan(all, job, alltoall, route_over(job, {"node"}));
        ASSERT_FALSE(plan::verify(right, job));
        // Without any one of its steps, or the waits of one, no plan is right.
        for (std::size_t r = 0; r < right.programs.size(); ++r)
            for (std::size_t s = 0; s < right.programs[r].steps.size(); ++s) {
                if (right.programs[r].steps[s].wait_count == 0) continue;
                plan::Plan wrong = right;
                wrong.programs[r].steps[s].wait_count = 0;
                EXPECT_TRUE(plan::verify(wrong, job)) << "rank " << r << ", step " << s;
            }
    }
}

TEST(NeighbourPlans, of_the_27_point_halo_of_1024_ranks_cross_nodes_and_switches_in_fewer_messages) {
    // 16 ranks a node, 16 nodes a leaf; ranks of a node are a row of the grid.
    const Job job = Job::regular({{"leaf", 4}, {"node", 16}, {"core", 16}});
    const AllNeighbours all = halo_27(8, 8, 16);
    const auto found = [&](const std::vector<std::string>& levels) {
        return crossing_of(neighbour_plan(all, job, true, route_over(job, levels)), job);
    };
    const Crossing direct = found({}), node = found({"node"}), both = found({"leaf", "node"});
    EXPECT_EQ(direct.messages_at_node, 24576);
    EXPECT_EQ(direct.messages_at_leaf, 9216);
    EXPECT_EQ(node.messages_at_node, 512) << "8 other rows from each of 64 nodes";
    EXPECT_EQ(node.bytes_at_node, direct.bytes_at_node);
    EXPECT_EQ(node.bytes_at_leaf, direct.bytes_at_leaf);
    EXPECT_EQ(both.messages_at_leaf, 8) << "each leaf to the one before and the one after";
    EXPECT_EQ(both.bytes_at_leaf, direct.bytes_at_leaf);
}

TEST(Neighbourhoods, whose_two_sides_are_the_same_edges_leave_no_rest) {
    const AllNeighbours all = random_neighbours(20, 9, 1);
    const auto rest = [](const AllNeighbours& some) {
        std::uint64_t sum = 0;
        for (std::size_t r = 0; r < some.size(); ++r) sum += unmatched({static_cast<std::int32_t>(r)}, some[r]);
        return sum;
    };
    EXPECT_EQ(rest(all), 0U);
    AllNeighbours lacking = all;
    for (Neighbours& own : lacking)
        if (!own.sources.empty()) {
            own.sources.pop_back();
            break;
        }
    EXPECT_NE(rest(lacking), 0U);
    AllNeighbours turned = all;
    turned[3].sources.push_back(4);
    turned[3].targets.push_back(4);
    EXPECT_NE(rest(turned), 0U) << "an edge each way, of which the other end knows nothing";
}

TEST(Neighbourhoods, that_end_too_early_are_refused) {
    EXPECT_EQ(error_of([] { Neighbourhood({0, 2, 0, 1}); }), "a list of neighbours ends too early");
    EXPECT_EQ(error_of([] { Neighbourhood({0, 2}); }), "a list of neighbours ends too early");
}

}  // namespace
}  // namespace palmette::collectives
