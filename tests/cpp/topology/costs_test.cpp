#include <gmock/gmock.h>

#include "palmette/topology/job.hpp"
#include "support/errors.hpp"

namespace palmette::topology {
namespace {

using base::Json;
using test::error_of;
using testing::HasSubstr;

constexpr std::string_view calibrated = R"({
  "levels": [
    {"name": "leaf", "latency_s": 3e-6, "overhead_s": 1e-7, "stream_bytes_per_s": 8e9, "source": "calibrated"},
    {"name": "node", "latency_s": 2e-6, "source": "the data sheet"},
    {"name": "socket", "latency_s": 4e-7},
    {"name": "core", "latency_s": 2e-7, "together_bytes_per_s": 2e10}],
  "memory": {"copy_bytes_per_s": 9e9, "reduce_bytes_per_s": 5e9, "source": "calibrated"},
  "insides": {"2x2": [{"level": "socket", "count": 2, "children": [{"level": "core", "count": 2}]}]},
  "tree": {"children": [
    {"level": "leaf", "up_bytes_per_s": 1e9, "load": 0.25, "children": [
      {"level": "node", "name": "a", "inside": "2x2"}, {"level": "node", "name": "b", "inside": "2x2"}]},
    {"level": "leaf", "up_bytes_per_s": 1e9, "children": [{"level": "node", "name": "c", "inside": "2x2"}]}]}})";

Machine machine() { return Machine::from_json(Json::parse(calibrated)); }
Job whole_job() { return {machine(), make_placement(machine(), "block", 0)}; }

TEST(Costs, levels_keep_their_figures_and_who_says_so) {
    const Job job = whole_job();
    ASSERT_EQ(job.levels().size(), 3U);
    EXPECT_EQ(job.levels()[0].costs, (LevelCosts{3e-6, 1e-7, 8e9, CostSource::calibrated}));
    EXPECT_EQ(job.levels()[1].costs, (LevelCosts{2e-6, 0, 0, CostSource::given}));
    EXPECT_DOUBLE_EQ(job.inside().together_bytes_per_s, 2e10) << "two cores of a socket";
    EXPECT_EQ(job.memory(), (MemoryCosts{9e9, 5e9, CostSource::calibrated}));
}

TEST(Costs, a_receiver_may_have_an_overhead_of_its_own) {
    const auto read = [](const char* text) { return read_level_costs(Json::parse(text), "$.node"); };
    const LevelCosts costs = read(R"({"overhead_s": 3e-7, "receive_overhead_s": 4e-7})");
    EXPECT_DOUBLE_EQ(costs.receive_overhead_s, 4e-7);
    Json written = Json::object();
    write_costs(costs, written);
    EXPECT_EQ(read_level_costs(written, "$"), costs);
    EXPECT_THAT(error_of([&] { read(R"({"overhead_s": 1e-7, "receive_overhead_s": 4e-7})"); }),
                HasSubstr("$.node.receive_overhead_s: expected at most twice overhead_s"));
}

TEST(Costs, ranks_that_no_level_tells_apart_have_those_of_the_outermost_level_that_was_left_out) {
    EXPECT_DOUBLE_EQ(whole_job().inside().latency_s, 2e-7) << "two cores of a socket";
    const Job one_a_socket = whole_job().restricted_to({Rank{0}, Rank{2}, Rank{4}, Rank{6}});
    EXPECT_FALSE(one_a_socket.find_level("socket"));
    EXPECT_DOUBLE_EQ(one_a_socket.inside().latency_s, 4e-7) << "two sockets of a node";
}

TEST(Costs, a_host_with_slots_alone_has_costs_too) {
    const Machine slots = Machine::from_json(Json::parse(
        R"({"levels": [{"name": "node"}], "same_host": {"latency_s": 5e-7}, "tree": {"children": [{"level": "node", "name": "a", "slots": 2}]}})"));
    EXPECT_DOUBLE_EQ(Job(slots, make_placement(slots, "block", 0)).inside().latency_s, 5e-7);
    EXPECT_EQ(Machine::from_json(slots.to_json()).to_json().dump(), slots.to_json().dump());
}

TEST(Costs, load_takes_its_share_of_an_edge) {
    const Job job = whole_job();
    EXPECT_DOUBLE_EQ(job.levels()[0].free_bytes_per_s(0), 0.75e9);
    EXPECT_DOUBLE_EQ(job.levels()[0].free_bytes_per_s(1), 1e9);
    EXPECT_DOUBLE_EQ(job.levels()[0].up_bytes_per_s[0], 1e9);
}

TEST(Costs, travel_with_the_machine_and_the_job) {
    EXPECT_EQ(Machine::from_json(machine().to_json()).to_json().dump(), machine().to_json().dump());
    const Job job = whole_job();
    const Job read = Job::from_json(Json::parse(job.to_json().dump()));
    EXPECT_EQ(read.levels()[0].costs, job.levels()[0].costs);
    EXPECT_EQ(read.inside(), job.inside());
    EXPECT_EQ(read.memory(), job.memory());
    EXPECT_DOUBLE_EQ(read.levels()[0].load[0], 0.25);
    const Job part = job.restricted_to({Rank{9}, Rank{1}, Rank{0}});
    EXPECT_EQ(part.levels()[0].costs, job.levels()[0].costs);
    EXPECT_EQ(part.memory(), job.memory());
    EXPECT_DOUBLE_EQ(part.levels()[0].load[0], 0.25);
}

TEST(Costs, bad_figures_are_named) {
    const auto with = [](std::string_view level, std::string_view node) {
        return Machine::from_json(
            Json::parse(base::cat(R"({"levels": [{"name": "node")", level,
                                  R"(}], "tree": {"children": [{"level": "node", "name": "a")", node, "}]}}")));
    };
    EXPECT_THAT(error_of([&] { with(R"(, "overhead_s": -1)", ""); }),
                HasSubstr("machine.levels[node].overhead_s: expected 0 for unknown, or up to 1e9 seconds"));
    EXPECT_THAT(error_of([&] { with("", R"(, "load": 1)"); }), HasSubstr("[a].load: expected 0 to below 1"));
}

TEST(Costs, a_jobs_list_of_capacities_must_fit_its_groups) {
    const Json job = Json::parse(
        R"({"size": 2, "rank_at": [[0, 0, 1]], "position_of": [[0, 0, 1]], "levels": [{"name": "node", "even_size": 1, "up_bytes_per_s": [1, 2, 3]}]})");
    EXPECT_THAT(error_of([&] { Job::from_json(job); }), HasSubstr("one for each of 2 groups, found 3"));
}

}  // namespace
}  // namespace palmette::topology
