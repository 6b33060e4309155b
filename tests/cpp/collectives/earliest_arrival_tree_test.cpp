#include "palmette/collectives/trees/earliest_arrival_tree.hpp"

#include <gmock/gmock.h>

#include <map>

#include "palmette/collectives/registry.hpp"
#include "palmette/plan/verify.hpp"
#include "support/costed.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives {
namespace {

using testing::HasSubstr;

/// Leaves of 3, 1, 4 and 2 nodes of 4, 2 and 5 cores in turn: 36 places.
topology::Machine uneven_machine() {
    std::string tree;
    int host = 0;
    for (const int nodes : {3, 1, 4, 2}) {
        tree += std::string(tree.empty() ? "" : ",") + R"({"level":"leaf","name":"s)" + std::to_string(host) +
                R"(","up_bytes_per_s":2e9,"children":[)";
        for (int n = 0; n < nodes; ++n, ++host)
            tree += std::string(n > 0 ? "," : "") + R"({"level":"node","up_bytes_per_s":1e9,"name":"h)" +
                    std::to_string(host) + R"(","inside":")" + "abc"[host % 3] + "\"}";
        tree += "]}";
    }
    return topology::Machine::from_json(base::Json::parse(
        R"({"levels":[{"name":"leaf","latency_s":2.5e-6,"overhead_s":3e-7},{"name":"node","latency_s":1.5e-6,"overhead_s":3e-7},)"
        R"({"name":"core","latency_s":5e-7,"overhead_s":1e-7,"together_bytes_per_s":5e9}],)"
        R"("insides":{"a":[{"level":"core","count":4}],"b":[{"level":"core","count":2}],"c":[{"level":"core","count":5}]},)"
        R"("tree":{"name":"top","children":[)" +
        tree + "]}}"));
}

Job uneven_job(std::int32_t p) {
    const topology::Machine machine = uneven_machine();
    return {machine, topology::make_placement(machine, "random:3", p)};
}

/// Nodes of one rank, a message's overhead 1 us and its latency 3 us.
Job postal_job(std::int32_t nodes) {
    return test::costed_job(R"({"name":"node","latency_s":3e-6,"overhead_s":1e-6})", "", nodes, 1);
}

TEST(EarliestArrivalTree, is_one_tree_for_every_root_with_and_without_helpers) {
    for (std::int32_t p = 1; p <= 33; ++p) {
        const Job job = uneven_job(p);
        for (std::int32_t root = 0; root < p; ++root)
            for (const bool groups_first : {false, true})
                for (const std::int32_t helpers : {0, 1, 2, 9}) {
                    const EarliestArrivalTree tree(job, {root}, {helpers, groups_first, true, 512});
                    for (std::int32_t at = 0; at < p; ++at) {
                        const TreeNeighbours near = tree.of({at});
                        ASSERT_EQ(near.parent.has_value(), at != root);
                        for (const TreeLink& child : near.children)
                            ASSERT_EQ(tree.of(child.peer).parent->peer, Position{at});
                        // Parents lead to the root: nobody's own descendant.
                        std::int32_t steps = 0;
                        for (auto up = near.parent; up; up = tree.of(up->peer).parent) ASSERT_LT(++steps, p);
                    }
                }
    }
}

TEST(EarliestArrivalTree, makes_right_plans) {
    for (const std::int32_t p : {1, 2, 3, 8, 17, 33})
        for (const Collective collective : {Collective::bcast, Collective::reduce})
            for (const char* text :
                 {"earliest", "earliest:helpers=0", "earliest:helpers=9,first=groups", "earliest:segment=100"})
                for (std::int32_t root = 0; root < p; ++root) {
                    const Job job = uneven_job(p);
                    Request request{collective, Rank{root}, 396};
                    request.element_bytes = 4;
                    ASSERT_EQ(plan::verify(make_plan(job, request, Spec::parse(text)), job), std::nullopt)
                        << text << ", " << p << " ranks, root " << root;
                }
}

/// When the last one hears, in microseconds, where each message keeps its sender for one and arrives after three.
int last_to_hear_us(const Job& job) {
    const EarliestArrivalTree tree(job, {0}, {});
    std::map<std::int32_t, int> informed_us{{0, 0}};
    std::vector<std::int32_t> order{0};
    int last = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        int sent_us = informed_us[order[i]];
        for (const TreeLink& child : tree.of({order[i]}).children) {
            informed_us[child.peer.value] = sent_us++ + 3;
            last = std::max(last, informed_us[child.peer.value]);
            order.push_back(child.peer.value);
        }
    }
    return last;
}

TEST(EarliestArrivalTree, reaches_all_as_soon_as_the_postal_model_allows_where_latencies_are_equal) {
    std::vector<std::int32_t> reached{1, 1, 1};  // N(t) = N(t - 1) + N(t - 3)
    while (reached.back() < 200) reached.push_back(reached.back() + reached[reached.size() - 3]);
    for (const std::int32_t nodes : {1, 2, 3, 4, 5, 13, 33, 64, 150}) {
        int least_us = 0;
        while (reached[static_cast<std::size_t>(least_us)] < nodes) ++least_us;
        EXPECT_EQ(last_to_hear_us(postal_job(nodes)), least_us) << nodes;
    }
}

TEST(EarliestArrivalTree, tells_near_nodes_first_or_a_node_of_each_group) {
    const Job job = uneven_job(33);
    const topology::Partition& leaves = job.levels()[*job.find_level("leaf")].groups;
    const auto first_informed = [&](bool groups_first) {
        const TreeNeighbours near = EarliestArrivalTree(job, {0}, {0, groups_first, false, 8}).of({0});
        return leaves.group_of(near.children.front().peer.value);
    };
    EXPECT_EQ(first_informed(false), leaves.group_of(0));
    EXPECT_NE(first_informed(true), leaves.group_of(0));
}

TEST(EarliestArrivalTree, lets_helpers_tell_other_nodes) {
    const Job job = test::costed_job(
        R"({"name":"node","latency_s":3e-6,"overhead_s":1e-6},{"name":"core","latency_s":4e-7,"overhead_s":1e-7})", "",
        9, 4);
    const auto nodes_informed = [&](std::int32_t helpers, std::int32_t position) {
        int informed = 0;
        for (const TreeLink& child : EarliestArrivalTree(job, {0}, {helpers, false, false, 8}).of({position}).children)
            informed += child.peer.value >= 4 ? 1 : 0;
        return informed;
    };
    EXPECT_GT(nodes_informed(0, 0), 3);
    EXPECT_EQ(nodes_informed(0, 1), 0);
    EXPECT_GT(nodes_informed(2, 1), 1);
    EXPECT_GT(nodes_informed(2, 2), 1);
    EXPECT_EQ(nodes_informed(2, 3), 0);
}

TEST(EarliestArrivalTree, refuses_what_it_knows_no_costs_of_and_orders) {
    const auto refusal = [](const Job& job, const char* text, bool ordered) {
        Request request{Collective::reduce, Rank{0}, 64};
        request.ordered = ordered;
        return test::error_of([&] { make_program(job, Rank{0}, request, Spec::parse(text)); });
    };
    EXPECT_THAT(refusal(test::job_on("2leaf:2node:2core"), "earliest", false),
                HasSubstr("between groups of level 'leaf' are unknown: run `palmette calibrate`"));
    EXPECT_THAT(
        refusal(test::costed_job(R"({"name":"node","latency_s":3e-6,"overhead_s":1e-6})", "", 2, 2), "earliest", false),
        HasSubstr("inside of nodes are unknown"));
    EXPECT_THAT(refusal(postal_job(4), "earliest", true), HasSubstr("doesn't combine in the order of ranks"));
    EXPECT_THAT(refusal(postal_job(4), "earliest:helpers=-1", false), HasSubstr("helpers"));
    EXPECT_THAT(refusal(postal_job(4), "earliest:first=last", false), HasSubstr("first"));
    EXPECT_THAT(refusal(postal_job(1025), "earliest", false), HasSubstr("at most 1024, not 1025"));
}

}  // namespace
}  // namespace palmette::collectives
