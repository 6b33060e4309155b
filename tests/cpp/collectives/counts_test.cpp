// The counts that the literature's methods must have, exactly: messages and bytes over the machine's links.
#include <gmock/gmock.h>

#include "palmette/base/text.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives::counts_tests {
namespace {

using plan::LevelCount;
using plan::PlanCount;
using test::job_on;

PlanCount count(const Job& job, Collective collective, std::string_view text, std::int32_t root = 0,
                std::int64_t block_bytes = 1) {
    const Request request{collective, Rank{root}, block_bytes};
    return plan::count(make_plan(job, request, Spec::parse(text)), job, {block_bytes});
}

const LevelCount& level(const PlanCount& count, std::string_view name) {
    for (const LevelCount& one : count.levels)
        if (one.level == name) return one;
    throw std::runtime_error("no such level");
}

/// Blocks that the busiest node's adapter sends.
std::int64_t out_of_a_node(std::int32_t nodes, bool cyclic, const std::string& text) {
    const PlanCount made = count(Job::regular({{"node", nodes}, {"core", 16}}, cyclic), Collective::allgather, text);
    std::int64_t most = 0;
    for (const plan::LinkCount& link : level(made, "node").links) most = std::max(most, link.bytes_out);
    return most;
}

std::string leaders(std::int32_t number, const char* layout) {
    return base::cat("leaders:leaders=", number, ",between=recursive_doubling,layout=", layout);
}

TEST(LeadersOf16RanksANode, send_the_least_over_rails_with_every_exchange_between_them) {
    const auto text = [](std::int32_t number, const char* layout, const char* between) {
        return base::cat("leaders:leaders=", number, ",between=", between, ",layout=", layout);
    };
    for (const char* between : {"ring", "bruck", "recursive_doubling", "neighbor_exchange"})
        for (const std::int32_t number : {1, 2, 4, 16})
            EXPECT_EQ(out_of_a_node(8, false, text(number, "rails", between)), 112) << between;
    // One list of all leaders can't have it both ways: what suits recursive doubling and Bruck is worst for a ring.
    EXPECT_EQ(out_of_a_node(8, false, text(4, "rail_major", "bruck")), 112);
    EXPECT_EQ(out_of_a_node(8, false, text(4, "node_major", "bruck")), 468);
    EXPECT_EQ(out_of_a_node(8, false, text(4, "rail_major", "ring")), 496);
    EXPECT_EQ(out_of_a_node(8, false, text(4, "node_major", "ring")), 124);
}

struct Table {
    std::int32_t nodes;
    std::int64_t recursive_doubling_block, recursive_doubling_cyclic, ring_block, ring_cyclic;
};

class AllgatherOf16RanksANode : public testing::TestWithParam<Table> {};

TEST_P(AllgatherOf16RanksANode, flat_recursive_doubling_and_ring_depend_on_the_placement) {
    const Table& table = GetParam();
    EXPECT_EQ(out_of_a_node(table.nodes, false, "recursive_doubling:order=rank"), table.recursive_doubling_block);
    EXPECT_EQ(out_of_a_node(table.nodes, true, "recursive_doubling:order=rank"), table.recursive_doubling_cyclic);
    EXPECT_EQ(out_of_a_node(table.nodes, false, "ring:order=rank"), table.ring_block);
    EXPECT_EQ(out_of_a_node(table.nodes, true, "ring:order=rank"), table.ring_cyclic);
}

TEST_P(AllgatherOf16RanksANode, topology_order_makes_the_placement_irrelevant) {
    const std::int64_t must_come_in = 16 * (GetParam().nodes - 1);
    for (const bool cyclic : {false, true}) {
        EXPECT_EQ(out_of_a_node(GetParam().nodes, cyclic, "ring"), must_come_in);
        EXPECT_EQ(out_of_a_node(GetParam().nodes, cyclic, "ring:nested=no"), must_come_in + 15);
    }
}

TEST_P(AllgatherOf16RanksANode, leaders_in_node_major_order_send_more_with_every_leader) {
    const std::int64_t once = 16 * (GetParam().nodes - 1);
    for (const std::int32_t number : {1, 2, 4, 8, 16})
        EXPECT_EQ(out_of_a_node(GetParam().nodes, false, leaders(number, "node_major")), number * once);
}

TEST_P(AllgatherOf16RanksANode, leaders_in_rail_major_order_and_rails_send_the_least_for_any_number_of_leaders) {
    const std::int64_t once = 16 * (GetParam().nodes - 1);
    for (const std::int32_t number : {1, 2, 4, 8, 16})
        for (const bool cyclic : {false, true}) {
            EXPECT_EQ(out_of_a_node(GetParam().nodes, cyclic, leaders(number, "rail_major")), once) << number;
            EXPECT_EQ(out_of_a_node(GetParam().nodes, cyclic, leaders(number, "rails")), once) << number;
        }
}

INSTANTIATE_TEST_SUITE_P(Nodes, AllgatherOf16RanksANode,
                         testing::Values(Table{8, 1792, 112, 127, 2032}, Table{64, 16128, 1008, 1023, 16368}),
                         [](const auto& made) { return base::cat(made.param.nodes, "x16"); });

/// Rank i sits on leaf i mod R, hosts of 4 ranks.
Job dealt_over_leaves(std::int32_t leaves, std::int32_t ranks) {
    const topology::Machine machine =
        topology::Machine::synthetic(base::cat(leaves, "leaf:", ranks / leaves / 4, "node:4core"));
    std::vector<std::string> hosts;
    const auto hosts_per_leaf = static_cast<std::int32_t>(machine.hosts().size()) / leaves;
    for (std::int32_t r = 0; r < ranks; ++r)
        hosts.push_back(machine.host(r % leaves * hosts_per_leaf + r / leaves % hosts_per_leaf).name);
    return {machine, topology::placement_on_hosts(machine, hosts)};
}

TEST(GatherMessagesBetweenLeaves, are_p_times_1_minus_1_over_R_in_rank_order_when_ranks_are_dealt_over_leaves) {
    for (const std::int32_t leaves : {2, 4, 8}) {
        const std::int32_t p = 64;
        const Job job = dealt_over_leaves(leaves, p);
        for (const char* text : {"linear:order=rank", "k_nomial:order=rank"})
            EXPECT_EQ(level(count(job, Collective::gather, text), "leaf").messages, p - p / leaves)
                << text << ' ' << leaves;
    }
}

TEST(GatherMessagesBetweenLeaves, are_R_minus_1_by_topology_whatever_placement_and_root) {
    for (const std::int32_t leaves : {2, 4, 8}) {
        const Job job = dealt_over_leaves(leaves, 64);
        for (const Collective collective : {Collective::gather, Collective::scatter})
            for (const char* text :
                 {"by_topology", "by_topology:node=linear,leaf=linear,top=linear", "by_topology:leaf=linear"})
                for (const std::int32_t root : {0, 17, 63})
                    EXPECT_EQ(level(count(job, collective, text, root), "leaf").messages, leaves - 1) << text;
    }
}

TEST(GatherBytesBetweenLeaves, are_the_same_in_both_orders_with_block_placement_and_powers_of_two) {
    const Job job = job_on("4leaf:4node:4core");
    const std::int64_t flat = level(count(job, Collective::gather, "k_nomial:order=rank"), "leaf").bytes;
    EXPECT_EQ(level(count(job, Collective::gather, "by_topology"), "leaf").bytes, flat);
    EXPECT_EQ(level(count(job, Collective::gather, "by_topology"), "leaf").messages, 3);
}

TEST(GatherByTopology, crosses_each_link_below_a_leader_once_and_carries_each_block_once) {
    for (const std::string& machine : test::machines())
        for (const std::string& placement : test::placements()) {
            const Job job = job_on(machine, placement);
            for (const std::int32_t root : {0, 13, 32}) {
                const PlanCount made = count(job, Collective::gather,
                                             "by_topology:node=binomial,leaf=binomial,pod=binomial,top=linear", root);
                for (std::size_t l = 0; l < job.levels().size(); ++l) {
                    const topology::Partition& groups = job.levels()[l].groups;
                    if (job.levels()[l].name == "socket") continue;
                    for (std::int32_t g = 0; g < groups.count(); ++g) {
                        const plan::LinkCount& link = made.levels[l].links[static_cast<std::size_t>(g)];
                        const bool has_root = groups.group_of(job.position_of({root}).value) == g;
                        // With a linear top the outermost groups pass on nothing for others.
                        if (l == 0) {
                            EXPECT_EQ(link.messages_out, has_root ? 0 : 1);
                            EXPECT_EQ(link.bytes_out, has_root ? 0 : groups.size_of(g));
                        }
                        EXPECT_EQ(link.bytes_out - link.bytes_in,
                                  has_root ? groups.size_of(g) - job.size() : groups.size_of(g));
                        EXPECT_LE(link.messages_out, has_root ? 0 : 1) << machine << ' ' << made.levels[l].level << g;
                    }
                }
            }
        }
}

TEST(NestedRing, carries_into_every_group_of_every_level_exactly_what_it_lacks) {
    for (const std::string& machine : test::machines())
        for (const std::string& placement : test::placements()) {
            const Job job = job_on(machine, placement);
            const PlanCount nested = count(job, Collective::allgather, "ring");
            for (std::size_t l = 0; l < job.levels().size(); ++l) {
                const topology::Partition& groups = job.levels()[l].groups;
                for (std::int32_t g = 0; g < groups.count(); ++g)
                    EXPECT_EQ(nested.levels[l].links[static_cast<std::size_t>(g)].bytes_in,
                              job.size() - groups.size_of(g))
                        << machine << ' ' << placement << ' ' << nested.levels[l].level << g;
            }
        }
}

TEST(PlainRing, carries_one_block_into_a_group_for_every_step) {
    const Job job = job_on("3leaf:3+3+2node:2core", "random:4");
    const PlanCount plain = count(job, Collective::allgather, "ring:nested=no");
    for (const plan::LinkCount& link : level(plain, "leaf").links) EXPECT_EQ(link.bytes_in, job.size() - 1);
}

TEST(Stages, are_as_many_as_the_methods_say) {
    const Job job = job_on("64node");
    EXPECT_EQ(count(job, Collective::gather, "linear").longest_chain, 1);
    EXPECT_EQ(count(job, Collective::gather, "k_nomial").longest_chain, 6);
    EXPECT_EQ(count(job, Collective::scatter, "k_nomial:radix=4").longest_chain, 3);
    EXPECT_EQ(count(job, Collective::allgather, "recursive_doubling").longest_chain, 6);
    EXPECT_EQ(count(job, Collective::allgather, "bruck:radix=8").longest_chain, 2);
    EXPECT_EQ(count(job, Collective::allgather, "ring:nested=no").longest_chain, 63);
    EXPECT_EQ(count(job, Collective::allgather, "neighbor_exchange").longest_chain, 32);
}

TEST(Segments, add_messages_but_no_bytes) {
    const Job job = job_on("2leaf:4node:2core");
    const PlanCount whole = count(job, Collective::gather, "k_nomial", 0, 1000);
    const PlanCount cut = count(job, Collective::gather, "k_nomial:segment=300", 0, 1000);
    EXPECT_EQ(cut.messages, 4 * whole.messages);
    EXPECT_EQ(cut.bytes, whole.bytes);
}

TEST(DirectDelivery, sends_large_blocks_straight_to_the_root) {
    const Job job = job_on("2leaf:4node:2core");
    const PlanCount small = count(job, Collective::gather, "by_topology:direct=64K", 0, 65535);
    const PlanCount large = count(job, Collective::gather, "by_topology:direct=64K", 0, 65536);
    EXPECT_GT(small.bytes, 15 * 65535);
    EXPECT_EQ(large.bytes, 15 * 65536);
    EXPECT_EQ(large.longest_chain, 1);
}

}  // namespace
}  // namespace palmette::collectives::counts_tests
