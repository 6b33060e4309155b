#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "palmette/base/files.hpp"
#include "palmette/topology/machine.hpp"
#include "support/errors.hpp"

namespace palmette::topology {
namespace {

using base::Json;
using test::error_of;
using testing::HasSubstr;

std::string round_trip(const Machine& machine) { return Machine::from_json(machine.to_json()).to_json().dump(2); }

Machine read(std::string_view tree, std::string_view insides = "{}") {
    return Machine::from_json(Json::parse(base::cat(
        R"({"levels": [{"name": "pod"}, {"name": "leaf"}, {"name": "node"}, {"name": "socket"}, {"name": "core"}], "insides": )",
        insides, R"(, "tree": )", tree, "}")));
}

TEST(MachineJson, synthetic_machines_read_back_the_same) {
    for (const char* spec :
         {"1node", "33node", "2leaf:4node:2socket:4core", "3leaf@50Mbit/s~5ms:3+3+2node@100Mbit/s:2core",
          "4leaf:1+5+2+3node:1+4+3core", "2pod:2+3leaf:2+1+3node:2socket:2+3core",
          "aggregator@1GB/s+aggregator:2pod:2leaf+aggregator:2node"}) {
        const Machine machine = Machine::synthetic(spec);
        EXPECT_EQ(round_trip(machine), machine.to_json().dump(2)) << spec;
        EXPECT_EQ(Machine::from_json(machine.to_json()).total_slots(), machine.total_slots()) << spec;
    }
}

TEST(MachineJson, has_the_limits_and_addresses_of_aggregators) {
    const auto with = [](const char* aggregators) {
        return base::cat(R"({"aggregators": )", aggregators, R"(, "children": [{"level": "node", "name": "a"}]})");
    };
    const Machine machine = read(with(R"([{"name": "x", "up_bytes_per_s": 5e7, "address": "10.0.0.9:7117",
                       "limits": {"children": 8, "bytes": 65536}}, {"name": "y"}])"));
    ASSERT_EQ(machine.aggregators().size(), 2U);
    EXPECT_EQ(machine.aggregators()[0].address, "10.0.0.9:7117");
    EXPECT_EQ(machine.aggregators()[1].address, "");
    EXPECT_EQ(machine.aggregators()[0].most_children, 8);
    EXPECT_EQ(machine.aggregators()[0].memory_bytes, 65536);
    EXPECT_EQ(round_trip(machine), machine.to_json().dump(2));
    const auto error = [&](const char* aggregators) { return error_of([&] { read(with(aggregators)); }); };
    EXPECT_THAT(error(R"([{}])"), HasSubstr("aggregators.name: an aggregator needs a name"));
    EXPECT_THAT(error(R"([{"name": "x", "up_bytes_per_s": 0}])"),
                HasSubstr("aggregators[x].up_bytes_per_s: expected 1"));
    for (const char* address : {"n9", ":7117", "n9:", "n9:0", "n9:65536", "n9:-1", "n9:7117 "})
        EXPECT_THAT(error(base::cat(R"([{"name": "x", "address": ")", address, R"("}])").c_str()),
                    HasSubstr(base::cat("aggregators[x].address: '", address, "': expected ")));
    EXPECT_THAT(error(R"([{"name": "x", "limits": {"children": 0}}])"),
                HasSubstr("limits.children: expected 1 to 2147"));
    EXPECT_THAT(error_of([] { read(R"({"children": [{"level": "node", "name": "a", "aggregators": []}]})"); }),
                HasSubstr("a host has none"));
}

TEST(MachineJson, has_the_kind_of_aggregators) {
    const auto with = [](const char* aggregators) {
        return base::cat(R"({"aggregators": )", aggregators, R"(, "children": [{"level": "node", "name": "a"}]})");
    };
    const Machine machine = read(with(R"([{"name": "x", "kind": "sharp"}, {"name": "y", "kind": "daemon"}])"));
    EXPECT_EQ(machine.aggregators()[0].kind, Aggregator::Kind::sharp);
    EXPECT_EQ(machine.aggregators()[1].kind, Aggregator::Kind::daemon);
    EXPECT_EQ(round_trip(machine), machine.to_json().dump(2));
    const auto error = [&](const char* aggregators) { return error_of([&] { read(with(aggregators)); }); };
    EXPECT_THAT(error(R"([{"name": "x", "kind": "switch"}])"),
                HasSubstr("[x].kind: 'switch': expected daemon or sharp"));
    EXPECT_THAT(error(R"([{"name": "x", "kind": "sharp", "address": "n:1"}])"), HasSubstr("[x].address: switches"));
    EXPECT_THAT(error(R"([{"name": "x", "kind": "sharp", "up_bytes_per_s": 1}])"), HasSubstr("[x].up_bytes_per_s: sw"));
}

TEST(MachineJson, switches_that_can_reduce_do_so_from_the_highest_on) {
    const auto places = [](const char* fabric, const char* pod, const char* first, const char* second) {
        const auto can = [](const char* yes) { return *yes != 0 ? ", \"can_reduce\": true" : ""; };
        Machine machine =
            read(base::cat(R"({"name": "top")", can(fabric), R"(, "children": [{"name": "p", "level": "pod")", can(pod),
                           R"(, "children": [{"name": "l0", "level": "leaf")", can(first),
                           R"(, "children": [{"level": "node", "name": "a"}]}, {"name": "l1", "level": "leaf")",
                           can(second), R"(, "children": [{"level": "node", "name": "b"}]}]}]})"));
        machine.add_reducing_switches();
        std::string names;
        for (const MachineAggregator& one : machine.aggregators()) {
            EXPECT_EQ(one.kind, Aggregator::Kind::sharp);
            names += one.name + "; ";
        }
        return names;
    };
    EXPECT_EQ(places("y", "y", "y", "y"), "SHARP at top; ");
    EXPECT_EQ(places("", "y", "y", "y"), "SHARP at p; ");
    EXPECT_EQ(places("y", "y", "y", ""), "SHARP at l0; ");
    EXPECT_EQ(places("", "", "y", "y"), "SHARP at l0; SHARP at l1; ");
    EXPECT_EQ(places("", "", "", ""), "");
    Machine listed = read(R"({"can_reduce": true, "aggregators": [{"name": "mine", "kind": "sharp"}],
                              "children": [{"level": "node", "name": "a"}]})");
    listed.add_reducing_switches();
    EXPECT_EQ(listed.aggregators().size(), 1U);
}

TEST(MachineJson, a_level_may_be_missing_on_a_path) {
    const Machine machine = read(R"({"children": [
        {"level": "pod", "name": "p0", "children": [
            {"level": "leaf", "name": "l0", "children": [{"level": "node", "name": "a", "slots": 2}]},
            {"level": "node", "name": "b"}]},
        {"level": "node", "name": "c", "up_bytes_per_s": 100}]})");
    ASSERT_EQ(machine.hosts().size(), 3U);
    EXPECT_EQ(machine.total_slots(), 4);
    EXPECT_DOUBLE_EQ(machine.host(2).up_bytes_per_s, 100);
    EXPECT_EQ(round_trip(machine), machine.to_json().dump(2));
}

TEST(MachineJson, an_inside_may_be_uneven_and_lack_a_level) {
    const Machine machine = read(
        R"({"children": [{"level": "node", "name": "a", "inside": "odd"}]})",
        R"({"odd": [{"level": "socket", "children": [{"level": "core", "count": 3}]}, {"level": "core"}, {"level": "socket", "children": [{"level": "core", "count": 2}]}]})");
    EXPECT_EQ(machine.total_slots(), 6);
    const auto& groups = machine.insides().front().group_of_slot;
    EXPECT_THAT(groups[4], testing::ElementsAre(0, 1, 2, 3, 4, 5));
    // The lone core between the sockets is a group of its own at the level of sockets.
    const std::vector<std::int32_t>& sockets = groups[3];
    EXPECT_EQ(sockets[0], sockets[2]);
    EXPECT_NE(sockets[2], sockets[3]);
    EXPECT_NE(sockets[3], sockets[4]);
    EXPECT_EQ(sockets[4], sockets[5]);
}

TEST(MachineJson, finds_hosts_by_whole_name_and_up_to_the_first_dot) {
    const Machine machine =
        read(R"({"children": [{"level": "node", "name": "a"}, {"level": "node", "name": "b.local"}]})");
    EXPECT_EQ(machine.find_host("a"), 0);
    EXPECT_EQ(machine.find_host("a.cluster.example"), 0);
    EXPECT_EQ(machine.find_host("b.local"), 1);
    EXPECT_EQ(machine.find_host("b"), -1);
    EXPECT_EQ(machine.find_host("c"), -1);
}

TEST(MachineJson, errors_name_the_path_in_the_file) {
    EXPECT_THAT(error_of([] { Machine::from_json(Json(3)); }), HasSubstr("is this a topology.json"));
    EXPECT_THAT(error_of([] { Machine::from_json(Json::parse(R"({"version": 2, "machine": {"levels": []}})")); }),
                HasSubstr("this palmette reads version 1, the file has 2"));
    EXPECT_THAT(error_of([] { Machine::from_json(Json::parse(R"({"levels": [{"name": "leaf"}], "tree": {}})")); }),
                HasSubstr("no level is called 'node'"));
    EXPECT_THAT(error_of([] { read(R"({"children": []})"); }), HasSubstr("the machine has no hosts"));
    EXPECT_THAT(error_of([] { read(R"({"children": [{"level": "rack", "name": "r"}]})"); }),
                HasSubstr("machine.tree.children.level: 'rack' is not listed"));
    EXPECT_THAT(
        error_of([] {
            read(R"({"children": [{"level": "leaf", "name": "l", "children": [{"level": "pod", "name": "p"}]}]})");
        }),
        HasSubstr("[l].children.level: 'pod' must stand below"));
    EXPECT_THAT(error_of([] { read(R"({"children": [{"level": "node"}]})"); }), HasSubstr("a host needs a name"));
    EXPECT_THAT(error_of([] { read(R"({"children": [{"level": "node", "name": "a", "inside": "x"}]})"); }),
                HasSubstr("[a].inside: 'x' is not in machine.insides"));
    EXPECT_THAT(error_of([] { read(R"({"children": [{"level": "node", "name": "a", "slots": 0}]})"); }),
                HasSubstr("[a].slots: expected 1 to 1000000"));
    EXPECT_THAT(
        error_of([] { read(R"({"children": [{"level": "node", "name": "a"}, {"level": "node", "name": "a"}]})"); }),
        HasSubstr("host 'a' is listed twice"));
    EXPECT_THAT(error_of([] { read(R"({"children": [{"level": "socket", "name": "s"}]})"); }),
                HasSubstr("put it into machine.insides"));
    EXPECT_THAT(error_of([] { read(R"({"children": [{"level": "node", "name": "a", "up_bytes_per_s": -1}]})"); }),
                HasSubstr("[a].up_bytes_per_s: expected 0 for unknown, or 1 to 1e18"));
}

/// A file as `palmette discover` writes one of a large fabric.
std::string with_cables(const std::string& machine, const char* fabric_end = "}") {
    std::string cables = "\"cables\": [";
    for (int i = 0; i < 3000; ++i)
        cables += base::cat(i ? ",\n      " : "", "{\"from\": \"s", i, "\", \"to\": \"}]\"}");
    return base::cat("{\n  \"version\": 1,\n  \"fabric\": {\n    ", cables, "]\n  ", fabric_end,
                     ",\n  \"machine\": ", machine, "\n}\n");
}

/// Reads a text as a file.
Machine read_file(const std::string& text) {
    const std::string path = base::cat(testing::TempDir(), "/machine-", getpid(), ".json");
    if (!base::replace_file(path, text)) base::fail(path, " can't be written");
    const auto remove = [](const std::string* name) { std::remove(name->c_str()); };
    const std::unique_ptr<const std::string, decltype(remove)> removed(&path, remove);
    return Machine::from_file(path);
}

TEST(MachineJson, a_file_with_many_cables_gives_the_same_machine_and_the_same_errors) {
    const Machine machine = Machine::synthetic("2pod:2+3leaf@8GB/s:2+1+3node@4GB/s:2socket:2+3core");
    const std::string text = with_cables(machine.to_json().dump(2));
    EXPECT_GT(text.size(), 65536U);
    EXPECT_EQ(read_file(text).to_json().dump(2), machine.to_json().dump(2));
    // What is wrong is told with its line in the file, wherever it is.
    EXPECT_THAT(error_of([&] { read_file(with_cables("{\"levels\": oops}")); }), HasSubstr("line 3005"));
    EXPECT_THAT(error_of([&] { read_file(with_cables("{}")); }), HasSubstr("machine.levels: missing"));
    EXPECT_THAT(error_of([&] { read_file(with_cables("{\"levels\": []}", "")); }), HasSubstr("line 3007"));
    EXPECT_THAT(error_of([&] { read_file(text.substr(0, text.size() - 10)); }), HasSubstr("line"));
}

}  // namespace
}  // namespace palmette::topology
