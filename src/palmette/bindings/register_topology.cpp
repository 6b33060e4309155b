// Machine, Job and its levels.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "palmette/base/error.hpp"
#include "palmette/bindings/json_object.hpp"
#include "palmette/bindings/register.hpp"
#include "palmette/topology/job.hpp"
#include "palmette/topology/synthetic.hpp"

namespace palmette::bindings {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using topology::Job;
using topology::JobLevel;
using topology::Machine;
using topology::Position;
using topology::Rank;
using topology::SyntheticLevel;

std::int32_t checked(const char* what, std::int32_t value, std::int32_t size) {
    if (value < 0 || value >= size) base::fail(what, " ", value, " is outside of 0 to ", size - 1);
    return value;
}

std::string group_name(const JobLevel& level, std::int32_t group) {
    checked("group", group, level.groups.count());
    return level.names.empty() ? base::cat(level.name, group) : level.names[static_cast<std::size_t>(group)];
}

template <class Make>
auto per_group(const JobLevel& level, Make make) {
    std::vector<decltype(make(0))> out;
    for (std::int32_t g = 0; g < level.groups.count(); ++g) out.push_back(make(g));
    return out;
}

std::string host_of(const Job& job, std::int32_t rank) {
    const Position position = job.position_of({checked("rank", rank, job.size())});
    return group_name(job.nodes(), job.nodes().groups.group_of(position.value));
}

void register_machine(nb::module_& m) {
    nb::class_<SyntheticLevel>(m, "SyntheticLevel", "One level of a machine in the synthetic form.")
        .def_ro("counts", &SyntheticLevel::counts, "Groups below the next parent, used in turn, then from the start.")
        .def_ro("name", &SyntheticLevel::name)
        .def_ro("up_bytes_per_s", &SyntheticLevel::up_bytes_per_s,
                "Bandwidth of a group's edge to its parent; 0: unknown.")
        .def_ro("latency_s", &SyntheticLevel::latency_s, "None: unknown.")
        .def_ro("aggregators", &SyntheticLevel::aggregators,
                "At the switch of each group: bytes per second of their links; 0: no limit.");
    nb::class_<topology::SyntheticForm>(m, "SyntheticForm", "A machine in the synthetic form.")
        .def_ro("aggregators", &topology::SyntheticForm::aggregators, "At the top switch, as SyntheticLevel's.")
        .def_ro("levels", &topology::SyntheticForm::levels, "Outermost first.");
    m.def("parse_synthetic", &topology::parse_synthetic, "form"_a,
          "The parts of a form such as '3leaf@50Mbit/s:4node:2core'. Raises Error.");
    nb::class_<Machine>(m, "Machine",
                        "The hardware tree of a cluster: switch levels, hosts and levels inside of hosts.")
        .def_static("synthetic", &Machine::synthetic, "spec"_a,
                    "From a text such as '3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core'. Raises Error.")
        .def_static(
            "from_json", [](nb::object document) { return Machine::from_json(from_python(std::move(document))); },
            "document"_a, nb::sig("def from_json(document: str | dict[str, typing.Any]) -> Machine"),
            "From a topology.json, or its member `machine`, as text or as json.loads gives it. Raises Error.")
        .def_static(
            "from_file", [](const nb::object& path) { return Machine::from_file(path_text(path)); }, "path"_a,
            nb::sig("def from_file(path: str | os.PathLike[str]) -> Machine"),
            "Reads a topology.json. Raises Error naming the file and the place in it.")
        .def(
            "with_reducing_switches",
            [](Machine self) {
                self.add_reducing_switches();
                return self;
            },
            "With an aggregator of kind 'sharp' at each switch that can reduce, as all below it can, where the machine "
            "lists none itself: as a run has it.")
        .def(
            "to_json", [](const Machine& self) { return to_dict(self.to_json()); },
            nb::sig("def to_json(self) -> dict[str, typing.Any]"), "The `machine` object of a topology.json.")
        .def_prop_ro(
            "hosts",
            [](const Machine& self) {
                std::vector<std::string> out;
                for (const std::int32_t h : self.hosts()) out.push_back(self.nodes()[static_cast<std::size_t>(h)].name);
                return out;
            },
            "Names of the hosts in topology order.")
        .def_prop_ro(
            "slots",
            [](const Machine& self) {
                std::vector<std::int32_t> out;
                for (std::size_t h = 0; h < self.hosts().size(); ++h)
                    out.push_back(self.slots_of(static_cast<std::int32_t>(h)));
                return out;
            },
            "Slots of each host.")
        .def_prop_ro("total_slots", &Machine::total_slots, "Slots of all hosts.")
        .def_prop_ro(
            "levels",
            [](const Machine& self) {
                std::vector<std::string> out;
                for (const topology::MachineLevel& level : self.levels()) out.push_back(level.name);
                return out;
            },
            "Names of the levels, outermost first.")
        .def(
            "find_host",
            [](const Machine& self, std::string_view name) -> std::optional<std::int32_t> {
                const std::int32_t host = self.find_host(name);
                return host < 0 ? std::nullopt : std::optional(host);
            },
            "name"_a, "Index of a host by its name, whole or up to the first dot, or None.");
}

void register_level(nb::module_& m) {
    nb::class_<JobLevel>(m, "JobLevel", "One level of a job's tree: contiguous groups of positions.")
        .def_ro("name", &JobLevel::name)
        .def_prop_ro(
            "latency_s", [](const JobLevel& self) { return self.costs.latency_s; },
            "One way, leaving a group and staying in the parent group; 0: unknown.")
        .def_ro("costs", &JobLevel::costs, "Costs of messages that leave a group and stay in the parent group.")
        .def_prop_ro(
            "count", [](const JobLevel& self) { return self.groups.count(); }, "Number of groups.")
        .def_prop_ro(
            "sizes",
            [](const JobLevel& self) {
                return per_group(self, [&](std::int32_t g) { return self.groups.size_of(g); });
            },
            "Ranks in each group.")
        .def_prop_ro(
            "names",
            [](const JobLevel& self) { return per_group(self, [&](std::int32_t g) { return group_name(self, g); }); },
            "Name of each group; level and number where the machine gives none.")
        .def_prop_ro(
            "up_bytes_per_s",
            [](const JobLevel& self) {
                return per_group(self, [&](std::int32_t g) { return self.up_bytes_per_s[g]; });
            },
            "Capacity of the edge out of each group, each direction; 0: unknown.")
        .def_prop_ro(
            "load", [](const JobLevel& self) { return per_group(self, [&](std::int32_t g) { return self.load[g]; }); },
            "Share of each group's edge that other traffic takes.")
        .def(
            "first",
            [](const JobLevel& self, std::int32_t group) {
                return self.groups.first(checked("group", group, self.groups.count()));
            },
            "group"_a, "First position of a group. Raises Error.")
        .def(
            "group_of",
            [](const JobLevel& self, std::int32_t position) {
                return self.groups.group_of(checked("position", position, self.groups.size()));
            },
            "position"_a, "Group of a position. Raises Error.");
}

void register_costs(nb::module_& m) {
    using topology::LevelCosts;
    using topology::MemoryCosts;
    nb::class_<LevelCosts>(m, "LevelCosts", "Costs of the messages of one level; 0: unknown.")
        .def_ro("latency_s", &LevelCosts::latency_s, "One way, tiny message, the overheads of both ends included.")
        .def_ro("overhead_s", &LevelCosts::overhead_s, "CPU time per message of sender or receiver (o of LogP).")
        .def_ro("stream_bytes_per_s", &LevelCosts::stream_bytes_per_s, "Bandwidth of one pair without contention.")
        .def_ro("together_bytes_per_s", &LevelCosts::together_bytes_per_s,
                "Intra-node: aggregate bandwidth of all concurrent messages of one node.")
        .def_ro("receive_overhead_s", &LevelCosts::receive_overhead_s,
                "CPU time per message of the receiver, where it differs from the mean of both ends; 0: as overhead_s.")
        .def_prop_ro(
            "source", [](const LevelCosts& self) { return name_of(self.source); }, "unknown, given or calibrated.");
    nb::class_<MemoryCosts>(m, "MemoryCosts", "Rates of one rank in its own memory; 0: unknown.")
        .def_ro("copy_bytes_per_s", &MemoryCosts::copy_bytes_per_s)
        .def_ro("reduce_bytes_per_s", &MemoryCosts::reduce_bytes_per_s)
        .def_prop_ro(
            "source", [](const MemoryCosts& self) { return name_of(self.source); }, "unknown, given or calibrated.");
}

void register_aggregator(nb::module_& m) {
    using topology::JobAggregator;
    nb::class_<JobAggregator>(m, "JobAggregator", "What combines contributions on their way, as a job sees it.")
        .def_ro("name", &JobAggregator::name)
        .def_prop_ro("kind", &JobAggregator::kind_name, "daemon, or sharp: the switches themselves.")
        .def_ro("up_bytes_per_s", &JobAggregator::up_bytes_per_s,
                "Capacity of its link to the switch, each direction; 0: no limit.")
        .def_ro("most_children", &JobAggregator::most_children, "Contributions to one result; 0: no limit.")
        .def_ro("memory_bytes", &JobAggregator::memory_bytes, "Memory for contributions that wait; 0: no limit.")
        .def_ro("address", &JobAggregator::address, "HOST:PORT where its daemon listens; empty: none is known.")
        .def_ro("level", &JobAggregator::level,
                "Index into Job.levels: it is at the switch of a group of this level; -1: above all groups.")
        .def_ro("group", &JobAggregator::group);
}

void register_job(nb::module_& m) {
    nb::class_<Job>(m, "Job", "The occupied part of a machine, in topology order: what a plan is made for.")
        .def(
            "__init__",
            [](Job* self, const Machine& machine, std::string_view placement, std::int32_t ranks) {
                new (self) Job(machine, topology::make_placement(machine, placement, ranks));
            },
            "machine"_a, "placement"_a = "block", "ranks"_a = 0,
            "`placement` is block, cyclic, random:SEED, hosts=A,B,... or a file; ranks=0 takes all slots. Raises "
            "Error.")
        .def_static(
            "on_hosts",
            [](const Machine& machine, const std::vector<std::string>& hosts) {
                return Job(machine, topology::placement_on_hosts(machine, hosts));
            },
            "machine"_a, "hosts"_a, "From the host of each rank, rank 0 first. Raises Error.")
        .def_static(
            "regular", &Job::regular, "levels"_a, "cyclic"_a = false,
            "A regular tree, names and counts outermost first, such as [('leaf', 64), ('node', 16), ('core', 16)]. "
            "Memory is independent of the number of ranks. Raises Error.")
        .def_static("flat", &Job::flat, "ranks"_a, "Ranks of unknown placement.")
        .def_static("from_groups", &Job::from_groups, "names"_a, "key_of_rank"_a,
                    "From the group of each rank at each level, outermost first.")
        .def_static(
            "from_json",
            [](nb::object document) {
                Job job = Job::from_json(from_python(std::move(document)));
                job.check();
                return job;
            },
            "document"_a, nb::sig("def from_json(document: str | dict[str, typing.Any]) -> Job"),
            "What `to_json` gave. Raises Error.")
        .def(
            "to_json", [](const Job& self) { return to_dict(self.to_json()); },
            nb::sig("def to_json(self) -> dict[str, typing.Any]"), "The form in which rank 0 broadcasts the job.")
        .def_prop_ro("size", &Job::size, "Number of ranks.")
        .def("__len__", &Job::size)
        .def_prop_ro("inside", &Job::inside, "Costs between ranks that no level of this job tells apart.")
        .def_prop_ro("memory", &Job::memory, "Copy and reduction rates of a rank.")
        .def_prop_ro("levels", &Job::levels, "Levels that tell ranks apart, outermost first.")
        .def(
            "level",
            [](const Job& self, std::string_view name) -> std::optional<JobLevel> {
                const auto index = self.find_level(name);
                return index ? std::optional(self.levels()[*index]) : std::nullopt;
            },
            "name"_a, "The level of that name, or None.")
        .def(
            "rank_at",
            [](const Job& self, std::int32_t position) {
                return self.rank_at({checked("position", position, self.size())}).value;
            },
            "position"_a, "Rank at a position in topology order. Raises Error.")
        .def(
            "position_of",
            [](const Job& self, std::int32_t rank) {
                return self.position_of({checked("rank", rank, self.size())}).value;
            },
            "rank"_a, "Position of a rank in topology order. Raises Error.")
        .def_prop_ro("aggregators", &Job::aggregators,
                     "The aggregators that serve this job; the first is service position `size`.")
        .def(
            "parting_level",
            [](const Job& self, std::int32_t rank, std::int32_t other) {
                const auto all = self.size() + static_cast<std::int32_t>(self.aggregators().size());
                return self.parting_level(self.position_of({checked("rank", rank, all)}),
                                          self.position_of({checked("rank", other, all)}));
            },
            "rank"_a, "other"_a,
            "Index of the outermost level that tells two ranks or service positions apart; the number of levels where "
            "none does. Raises Error.")
        .def("host_of", &host_of, "rank"_a, "Name of the host of a rank. Raises Error.")
        .def_prop_ro(
            "hosts",
            [](const Job& self) {
                std::vector<std::string> out;
                for (std::int32_t r = 0; r < self.size(); ++r) out.push_back(host_of(self, r));
                return out;
            },
            "Name of the host of each rank.")
        .def(
            "without_aggregators",
            [](Job self, std::string_view kind) {
                using Kind = topology::Aggregator::Kind;
                self.drop_aggregators(kind == "sharp" ? Kind::sharp : Kind::daemon);
                return self;
            },
            "kind"_a, "The job where those of that kind, daemon or sharp, aren't in service.")
        .def(
            "restricted_to",
            [](const Job& self, const std::vector<std::int32_t>& ranks) {
                std::vector<Rank> checked_ranks;
                for (const std::int32_t rank : ranks) checked_ranks.push_back({checked("rank", rank, self.size())});
                return self.restricted_to(checked_ranks);
            },
            "ranks"_a, "The part that a communicator holds: ranks[i] is the rank here of its rank i. Raises Error.");
}

}  // namespace

void register_topology(nb::module_& m) {
    register_machine(m);
    register_costs(m);
    register_level(m);
    register_aggregator(m);
    register_job(m);
}

}  // namespace palmette::bindings
