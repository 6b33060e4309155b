#include "palmette/topology/job.hpp"

#include <gmock/gmock.h>

#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::topology {
namespace {

using base::Json;
using test::error_of;
using test::job_on;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> level_names(const Job& job) {
    std::vector<std::string> out;
    for (const JobLevel& level : job.levels()) out.push_back(level.name);
    return out;
}

std::vector<std::int32_t> sizes(const JobLevel& level) {
    std::vector<std::int32_t> out;
    for (std::int32_t g = 0; g < level.groups.count(); ++g) out.push_back(level.groups.size_of(g));
    return out;
}

std::vector<std::int32_t> order(const Job& job) {
    std::vector<std::int32_t> out;
    for (std::int32_t p = 0; p < job.size(); ++p) out.push_back(job.rank_at({p}).value);
    return out;
}

TEST(Job, knows_the_aggregators_at_switches_that_connect_its_ranks) {
    const char* const machine =
        "aggregator@1GB/s:2pod@4GB/s+aggregator@3GB/s:3leaf@500MB/s+aggregator@2GB/s:2node@1GB/s:2core";
    const auto seen = [](const Job& job) {
        std::vector<std::tuple<std::string, std::int32_t, std::int32_t, double>> out;
        for (const JobAggregator& one : job.aggregators())
            out.emplace_back(one.name, one.level, one.group, one.up_bytes_per_s / 1e6);
        return out;
    };
    using testing::FieldsAre;
    const Job all = job_on(machine);
    ASSERT_EQ(all.aggregators().size(), 9U);
    EXPECT_THAT(seen(all)[0], FieldsAre("aggregator0", -1, 0, 1000));
    EXPECT_THAT(seen(all)[2], FieldsAre("aggregator5", 0, 1, 3000));
    EXPECT_THAT(seen(all)[8], FieldsAre("aggregator8", 1, 5, 2000));
    EXPECT_EQ(Job::from_json(all.to_json()).to_json().dump(), all.to_json().dump());
    // Two leaves of one pod: that pod's is above all groups, the top's beyond the pod's link.
    std::vector<Rank> ranks;
    for (std::int32_t r = 12; r < 20; ++r) ranks.push_back({r});
    const Job pod = all.restricted_to(ranks);
    EXPECT_THAT(seen(pod), ElementsAre(FieldsAre("aggregator0", -1, 0, 1000), FieldsAre("aggregator5", -1, 0, 3000),
                                       FieldsAre("aggregator6", 0, 0, 2000), FieldsAre("aggregator7", 0, 1, 2000)));
    // One leaf: all else lies beyond its link.
    const Job leaf = pod.restricted_to({{0}, {2}, {3}});
    EXPECT_THAT(seen(leaf), ElementsAre(FieldsAre("aggregator0", -1, 0, 500), FieldsAre("aggregator5", -1, 0, 500),
                                        FieldsAre("aggregator6", -1, 0, 2000)));
    EXPECT_EQ(seen(job_on(machine, "hosts=h6,h6,h7")), seen(leaf));
}

TEST(Job, has_the_addresses_of_its_aggregators) {
    const Machine machine = Machine::from_json(Json::parse(
        R"({"levels": [{"name": "node"}], "tree": {
            "aggregators": [{"name": "a", "address": "[fe80::9]:7117"}, {"name": "b"}],
            "children": [{"level": "node", "name": "n0"}, {"level": "node", "name": "n1"}]}})"));
    const Job job = Job::from_json(Job(machine, make_placement(machine, "block")).to_json());
    ASSERT_EQ(job.aggregators().size(), 2U);
    EXPECT_EQ(job.aggregators()[0].address, "[fe80::9]:7117");
    EXPECT_EQ(job.aggregators()[1].address, "");
}

TEST(Job, places_aggregators_behind_its_ranks) {
    const Job job = job_on("aggregator+aggregator:2leaf+aggregator:2node:2core", "cyclic");
    EXPECT_EQ(job.size(), 8);
    EXPECT_EQ(job.position_of({9}).value, 9);
    EXPECT_EQ(job.rank_at({10}).value, 10);
    EXPECT_LT(job.group_at(0, {8}), 0);
    EXPECT_EQ(job.group_at(0, {11}), 1);
    EXPECT_LT(job.group_at(1, {11}), 0);
    EXPECT_EQ(job.parting_level({0}, {8}), 0U);   // the top from any rank
    EXPECT_EQ(job.parting_level({0}, {10}), 1U);  // a leaf's from its nodes
    EXPECT_EQ(job.parting_level({0}, {11}), 0U);
    EXPECT_EQ(job.parting_level({8}, {9}), 0U);
    Job without = job;
    without.drop_aggregators();
    EXPECT_TRUE(without.aggregators().empty());
    EXPECT_TRUE(without.restricted_to({{0}, {1}}).aggregators().empty());
}

TEST(Job, refuses_aggregators_that_stand_nowhere) {
    const auto error = [](const char* aggregator) {
        Json json = Job::flat(4).to_json();
        Json list = Json::array();
        list.push(Json::parse(aggregator));
        json.set("aggregators", std::move(list));
        return error_of([&] { Job::from_json(json); });
    };
    EXPECT_EQ(error(R"({"name": "a", "level": 0, "group": 3})"), "no error");
    EXPECT_THAT(error(R"({"name": "a", "level": 0, "group": 3, "address": "n9"})"),
                HasSubstr("job.aggregators[a].address: 'n9': expected HOST:PORT"));
    EXPECT_THAT(error(R"({"name": "a", "level": 1, "group": 0})"), HasSubstr("a stands at no switch of the job"));
    EXPECT_THAT(error(R"({"name": "a", "level": 0, "group": 4})"), HasSubstr("a stands at no switch of the job"));
    EXPECT_THAT(error(R"({"name": "a", "level": -1, "group": 0, "bytes": -1})"), HasSubstr("out of range"));
}

TEST(Job, positions_run_host_by_host_whatever_the_placement) {
    const Job job = job_on("2leaf:2node:2core", "cyclic");
    EXPECT_THAT(order(job), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
    EXPECT_EQ(job.position_of({5}).value, 3);
    EXPECT_THAT(sizes(job.nodes()), ElementsAre(2, 2, 2, 2));
}

TEST(Job, order_and_its_inverse_agree_and_every_level_nests_in_the_one_above) {
    for (const std::string& machine : test::machines())
        for (const std::string& placement : test::placements()) {
            const Job job = job_on(machine, placement);
            for (std::int32_t p = 0; p < job.size(); ++p) ASSERT_EQ(job.position_of(job.rank_at({p})).value, p);
            for (std::size_t l = 1; l < job.levels().size(); ++l)
                for (std::int32_t g = 0; g < job.levels()[l - 1].groups.count(); ++g) {
                    const std::int32_t first = job.levels()[l - 1].groups.first(g);
                    const Partition& inner = job.levels()[l].groups;
                    ASSERT_EQ(inner.first(inner.group_of(first)), first) << machine << ' ' << job.levels()[l].name;
                }
        }
}

TEST(Job, leaves_out_levels_that_tell_nothing_but_never_node) {
    EXPECT_THAT(level_names(job_on("2leaf:2node:2socket:2core")), ElementsAre("leaf", "node", "socket"));
    EXPECT_THAT(level_names(job_on("2leaf:2node:2socket:2core", "block", 4)), ElementsAre("node", "socket"))
        << "one node is used";
    EXPECT_THAT(level_names(job_on("2leaf:2node:2socket:2core", "block", 8)), ElementsAre("node", "socket"))
        << "one leaf is used";
    EXPECT_THAT(level_names(job_on("1node:4core")), ElementsAre("node"));
    EXPECT_THAT(level_names(job_on("4node")), ElementsAre("node"));
}

TEST(Job, keeps_capacities_latencies_and_names_of_occupied_groups) {
    const Job job = job_on("3leaf@50Mbit/s~5ms:3+3+2node@100Mbit/s:2core", "hosts=h7,h0,h7,h4");
    const JobLevel& leaf = job.levels()[0];
    EXPECT_THAT(leaf.names, ElementsAre("leaf0", "leaf1", "leaf2"));
    EXPECT_DOUBLE_EQ(leaf.costs.latency_s, 5e-3);
    EXPECT_DOUBLE_EQ(leaf.up_bytes_per_s[1], 6.25e6);
    EXPECT_THAT(job.nodes().names, ElementsAre("h0", "h4", "h7"));
    EXPECT_THAT(sizes(job.nodes()), ElementsAre(1, 1, 2));
    EXPECT_THAT(order(job), ElementsAre(1, 3, 0, 2));
}

TEST(Job, a_missing_level_is_filled_by_the_next_one_below_without_counting_its_edge_twice) {
    const Machine machine =
        Machine::from_json(Json::parse(R"({"levels": [{"name": "leaf"}, {"name": "node"}], "tree": {"children": [
        {"level": "leaf", "name": "l0", "up_bytes_per_s": 10, "children": [{"level": "node", "name": "a", "up_bytes_per_s": 5}, {"level": "node", "name": "b", "up_bytes_per_s": 5}]},
        {"level": "node", "name": "c", "up_bytes_per_s": 7}]}})"));
    const Job job(machine, make_placement(machine, "block"));
    EXPECT_THAT(job.levels()[0].names, ElementsAre("l0", "c"));
    EXPECT_DOUBLE_EQ(job.levels()[0].up_bytes_per_s[0], 10);
    EXPECT_DOUBLE_EQ(job.levels()[0].up_bytes_per_s[1], 0);
    EXPECT_DOUBLE_EQ(job.nodes().up_bytes_per_s[2], 7);
}

TEST(Job, reads_back_from_the_json_that_it_is_handed_round_in) {
    for (const std::string& machine : test::machines())
        for (const std::string& placement : test::placements()) {
            const Job job = job_on(machine, placement, 29);
            const Job again = Job::from_json(Json::parse(job.to_json().dump()));
            EXPECT_EQ(again.to_json().dump(), job.to_json().dump());
            EXPECT_EQ(order(again), order(job));
        }
    EXPECT_THAT(error_of([] {
                    Job::from_json(Json::parse(
                        R"({"size": 2, "rank_at": [[0, 0, 1]], "position_of": [[0, 0, 1]], "levels": []})"));
                }),
                HasSubstr("no level is called 'node'"));
    EXPECT_THAT(error_of([] { Job::from_json(Json::parse(R"({"size": 2})")); }), HasSubstr("job.rank_at: missing"));
}

TEST(Job, regular_jobs_equal_those_made_from_a_machine) {
    for (const bool cyclic : {false, true}) {
        const Job made = Job::regular({{"leaf", 3}, {"node", 4}, {"socket", 2}, {"core", 5}}, cyclic);
        const Job expected = job_on("3leaf:4node:2socket:5core", cyclic ? "cyclic" : "block");
        EXPECT_EQ(order(made), order(expected));
        EXPECT_EQ(level_names(made), level_names(expected));
        for (std::size_t l = 0; l < made.levels().size(); ++l)
            EXPECT_EQ(made.levels()[l].groups, expected.levels()[l].groups);
        for (std::int32_t r = 0; r < made.size(); ++r) ASSERT_EQ(made.position_of({r}), expected.position_of({r}));
    }
    EXPECT_THAT(error_of([] { Job::regular({{"leaf", 2}}); }), HasSubstr("needs a level called 'node'"));
    EXPECT_THAT(error_of([] { Job::regular({{"leaf", 0}, {"node", 2}}); }),
                HasSubstr("level 'leaf' needs at least one group"));
    EXPECT_THAT(error_of([] { Job::regular({{"leaf", 100'000}, {"node", 100'000}}); }), HasSubstr("too large"));
}

TEST(Job, ranks_that_share_keys_share_groups_and_nodes_come_in_order_of_their_first_rank) {
    const Job job = Job::from_groups({"node", "socket"}, {{7, 1}, {3, 0}, {7, 0}, {3, 0}, {5, 0}, {7, 1}});
    EXPECT_THAT(order(job), ElementsAre(2, 0, 5, 1, 3, 4));
    EXPECT_THAT(sizes(job.nodes()), ElementsAre(3, 2, 1));
    EXPECT_THAT(sizes(job.levels()[1]), ElementsAre(1, 2, 2, 1))
        << "equal keys on different nodes are different sockets";
    EXPECT_THAT(error_of([] { Job::from_groups({"leaf"}, {{0}, {1}}); }), HasSubstr("needs a level called 'node'"));
}

TEST(Job, a_communicator_holds_its_part_in_topology_order) {
    const Job world = job_on("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core", "random:5");
    const std::vector<Rank> members{{9}, {2}, {14}, {0}, {7}};
    const Job part = world.restricted_to(members);
    ASSERT_EQ(part.size(), 5);
    for (std::int32_t p = 0; p < 5; ++p) {
        const Rank here = part.rank_at({p});
        EXPECT_EQ(part.position_of(here).value, p);
        const Rank there = members[static_cast<std::size_t>(here.value)];
        const std::int32_t host = world.nodes().groups.group_of(world.position_of(there).value);
        EXPECT_EQ(part.nodes().names[static_cast<std::size_t>(part.nodes().groups.group_of(p))],
                  world.nodes().names[static_cast<std::size_t>(host)]);
        if (p == 0) continue;
        const Rank before = members[static_cast<std::size_t>(part.rank_at({p - 1}).value)];
        EXPECT_LT(world.position_of(before), world.position_of(there));
    }
    EXPECT_DOUBLE_EQ(part.nodes().up_bytes_per_s[0], 12.5e6);
    EXPECT_THAT(level_names(world.restricted_to({{3}})), ElementsAre("node"));
}

TEST(Job, has_groups_of_all_levels_of_the_machine_also_of_those_that_tell_nothing) {
    const auto counts = [](const Job& job) {
        std::vector<std::int32_t> out;
        for (const char* name : {"spine", "leaf", "node", "core"}) out.push_back(job.groups_named(name)->count());
        return out;
    };
    const Job job = job_on("2spine:2leaf:2node:2core", "block");
    EXPECT_THAT(counts(job), ElementsAre(2, 4, 8, 16));
    EXPECT_EQ(job.groups_named("switch"), job.groups_named("leaf"));
    EXPECT_EQ(job.groups_named("host"), job.groups_named("node"));
    EXPECT_EQ(job.groups_named("socket"), std::nullopt);
    // Two cores of one node: the job has the level `node` alone.
    const Job part = job.restricted_to({Rank{3}, Rank{2}});
    EXPECT_THAT(level_names(part), ElementsAre("node"));
    EXPECT_THAT(counts(part), ElementsAre(1, 1, 1, 2));
    EXPECT_THAT(counts(Job::from_json(part.to_json())), ElementsAre(1, 1, 1, 2));
    EXPECT_THAT(counts(part.restricted_to({Rank{0}})), ElementsAre(1, 1, 1, 1));
    EXPECT_EQ(Job::flat(3).groups_named("node")->count(), 3);
    EXPECT_EQ(Job::flat(3).groups_named("leaf"), std::nullopt);
}

TEST(Job, needs_a_rank) {
    EXPECT_EQ(error_of([] { Job(Machine::synthetic("1node"), {}); }), "a job needs at least one rank");
}

}  // namespace
}  // namespace palmette::topology
