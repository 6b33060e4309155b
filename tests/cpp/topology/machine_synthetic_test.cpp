#include <gmock/gmock.h>

#include "palmette/topology/machine.hpp"
#include "support/errors.hpp"

namespace palmette::topology {
namespace {

using test::error_of;
using testing::HasSubstr;

std::vector<std::int32_t> slots(const Machine& machine) {
    std::vector<std::int32_t> out;
    for (std::size_t h = 0; h < machine.hosts().size(); ++h)
        out.push_back(machine.slots_of(static_cast<std::int32_t>(h)));
    return out;
}

TEST(SyntheticMachine, has_the_counts_rates_and_latencies_of_its_text) {
    const Machine machine = Machine::synthetic("3leaf@50Mbit/s~5ms:3+3+2node@100Mbit/s:2core");
    ASSERT_EQ(machine.hosts().size(), 8U);
    EXPECT_EQ(machine.total_slots(), 16);
    EXPECT_DOUBLE_EQ(machine.levels()[0].costs.latency_s, 5e-3);
    EXPECT_DOUBLE_EQ(machine.host(0).up_bytes_per_s, 12.5e6);
    const MachineNode& leaf = machine.nodes()[static_cast<std::size_t>(machine.host(7).parent)];
    EXPECT_EQ(leaf.name, "leaf2");
    EXPECT_DOUBLE_EQ(leaf.up_bytes_per_s, 6.25e6);
    EXPECT_EQ(machine.host(7).name, "h7");
}

TEST(SyntheticMachine, has_aggregators_at_its_top_and_at_the_switches_of_a_level) {
    const Machine machine =
        Machine::synthetic("aggregator@400Mbit/s + aggregator:2leaf@50Mbit/s~5ms+aggregator@1Gbit/s:2node@100Mbit/s");
    ASSERT_EQ(machine.aggregators().size(), 4U);
    EXPECT_EQ(machine.aggregators()[0].node, 0);
    EXPECT_DOUBLE_EQ(machine.aggregators()[0].up_bytes_per_s, 50e6);
    EXPECT_DOUBLE_EQ(machine.aggregators()[1].up_bytes_per_s, 0);
    EXPECT_EQ(machine.nodes()[static_cast<std::size_t>(machine.aggregators()[3].node)].name, "leaf1");
    EXPECT_EQ(machine.aggregators()[3].name, "aggregator3");
    EXPECT_DOUBLE_EQ(machine.aggregators()[3].up_bytes_per_s, 125e6);
    EXPECT_DOUBLE_EQ(machine.nodes()[1].up_bytes_per_s, 6.25e6);
    EXPECT_DOUBLE_EQ(machine.levels()[0].costs.latency_s, 5e-3);
    const auto error = [](const char* form) { return error_of([&] { Machine::synthetic(form); }); };
    EXPECT_THAT(error("4node+aggregator:2core"), HasSubstr("aggregators stand at switches, above the level node"));
    EXPECT_THAT(error("2leaf:4host+aggregator"), HasSubstr("aggregators stand at switches"));
    EXPECT_THAT(error("aggregator5:4node"), HasSubstr("expected aggregator or aggregator@RATE"));
    EXPECT_THAT(error("2leaf+aggregator~5us:4node"), HasSubstr("expected aggregator or aggregator@RATE"));
    EXPECT_THAT(error("aggregator"), HasSubstr("must begin with a count"));
    EXPECT_THAT(error("aggregator:2aggregator:4node"), HasSubstr("can't have a level called 'aggregator'"));
}

TEST(SyntheticMachine, the_innermost_level_is_the_host_when_none_is_called_node) {
    const Machine machine = Machine::synthetic("2leaf:4host");
    EXPECT_EQ(machine.hosts().size(), 8U);
    EXPECT_EQ(machine.levels()[1].name, "node");
    EXPECT_EQ(machine.total_slots(), 8);
}

TEST(SyntheticMachine, lists_of_counts_repeat_over_parents_in_order) {
    EXPECT_THAT(slots(Machine::synthetic("2leaf:3node:1+4core")), testing::ElementsAre(1, 4, 1, 4, 1, 4));
    EXPECT_THAT(slots(Machine::synthetic("2node:2socket:1+3core")), testing::ElementsAre(4, 4));
    EXPECT_EQ(Machine::synthetic("1000leaf:16node:64core").insides().size(), 1U) << "equal hosts share their inside";
}

TEST(SyntheticMachine, levels_in_the_wrong_order_are_a_slip) {
    const auto error = [](const char* form) { return error_of([&] { Machine::synthetic(form); }); };
    EXPECT_THAT(error("2node:2leaf"), HasSubstr("leaf stands inside of node"));
    EXPECT_THAT(error("2node:2leaf"), HasSubstr("did you mean 2leaf:2node?"));
    EXPECT_THAT(error("2node@1GB/s:4core:3leaf"), HasSubstr("did you mean 3leaf:2node@1GB/s:4core?"));
    EXPECT_THAT(error("2socket:4node:2core"), HasSubstr("socket stands outside of node"));
    EXPECT_THAT(error("2socket:4node:2core"), HasSubstr("did you mean 4node:2socket:2core?"));
    EXPECT_THAT(error("aggregator:2core:4node"), HasSubstr("did you mean 4node:2core?"));
    EXPECT_EQ(Machine::synthetic("2group:2leaf:2node:2group2:2core").hosts().size(), 8U);
    EXPECT_EQ(Machine::synthetic("2node:2group:2core").hosts().size(), 2U);
}

TEST(SyntheticMachine, names_the_item_at_fault) {
    EXPECT_THAT(error_of([] { Machine::synthetic(""); }), HasSubstr("write it like 2leaf:4node:2socket:4core"));
    EXPECT_THAT(error_of([] { Machine::synthetic("2leaf:node"); }),
                HasSubstr("'node' must begin with a count of at least 1"));
    EXPECT_THAT(error_of([] { Machine::synthetic("2leaf:0node"); }), HasSubstr("'0node' must begin with a count"));
    EXPECT_THAT(error_of([] { Machine::synthetic("2leaf:4"); }), HasSubstr("'4' names no level"));
    EXPECT_THAT(error_of([] { Machine::synthetic("2node:2node"); }), HasSubstr("level 'node' stands twice"));
    EXPECT_THAT(error_of([] { Machine::synthetic("2leaf@fast:2node"); }), HasSubstr("'fast' is not a rate"));
    EXPECT_THAT(error_of([] { Machine::synthetic("2leaf!:2node"); }), HasSubstr("expected @RATE or ~LATENCY"));
    EXPECT_THAT(error_of([] { Machine::synthetic("9000leaf:9000node"); }), HasSubstr("more than a million"));
}

}  // namespace
}  // namespace palmette::topology
