// Plans, their messages and their counts.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <map>

#include "palmette/base/error.hpp"
#include "palmette/bindings/json_object.hpp"
#include "palmette/bindings/planned.hpp"
#include "palmette/bindings/register.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/space.hpp"
#include "palmette/plan/verify.hpp"

namespace palmette::bindings {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using plan::LevelCount;
using plan::LinkCount;
using plan::Message;
using plan::PlanCount;
using plan::Program;
using topology::Job;
using topology::Rank;

const char* name_of(plan::BlockOrder order) { return order == plan::BlockOrder::topology ? "topology" : "rank"; }

const char* name_of(plan::BlockSpace space) {
    switch (space) {
        case plan::BlockSpace::per_rank:
            return "per_rank";
        case plan::BlockSpace::pairs:
            return "pairs";
        case plan::BlockSpace::cut:
            return "cut";
        case plan::BlockSpace::listed:
            return "listed";
        case plan::BlockSpace::none:
            return "none";
    }
    return "none";
}

void register_program(nb::module_& m) {
    nb::class_<Program>(m, "Program", "One rank's part of a plan. Its size grows with the rank's own steps.")
        .def_prop_ro(
            "rank", [](const Program& self) { return self.rank.value; }, "Or service position, from Job.size on.")
        .def_ro("service", &Program::service, "A service position's index into Job.aggregators; -1: a rank's program.")
        .def_prop_ro(
            "order", [](const Program& self) { return name_of(self.order); },
            "What the index of a block counts: 'topology' (positions) or 'rank'.")
        .def("__len__", [](const Program& self) { return self.steps.size(); })
        .def_ro("stages", &Program::stages, "Names of the stages, in the order in which the rank executes them.")
        .def_prop_ro(
            "size_bytes",
            [](const Program& self) {
                std::size_t bytes = self.steps.size() * sizeof(plan::Step) +
                                    self.regions.size() * sizeof(plan::Region) +
                                    self.waits.size() * sizeof(plan::StepId);
                for (const plan::Blocks& layer : self.scratch)
                    bytes += layer.intervals().size() * sizeof(plan::Interval);
                return bytes;
            },
            "Memory that steps, regions and waits take.")
        .def(
            "text", [](const Program& self) { return plan::to_text(self); }, "One line a step.")
        .def(
            "to_json", [](const Program& self) { return to_dict(plan::to_json(self)); },
            nb::sig("def to_json(self) -> dict[str, typing.Any]"));
}

void register_message(nb::module_& m) {
    nb::class_<Message>(m, "Message", "One message of a plan.")
        .def_prop_ro(
            "sender", [](const Message& self) { return self.from.value; }, "Rank, or service position, that sends.")
        .def_prop_ro(
            "receiver", [](const Message& self) { return self.to.value; }, "Rank that receives.")
        .def_ro("tag", &Message::tag)
        .def_ro("time", &Message::time, "Length of the longest chain of messages that this one depends on.")
        .def_ro("stage", &Message::stage)
        .def_prop_ro(
            "blocks",
            [](const Message& self) {
                std::vector<std::pair<std::int64_t, std::int64_t>> out;
                for (const plan::Interval& i : self.blocks.intervals()) out.emplace_back(i.first, i.count);
                return out;
            },
            "(first, count) of each run of blocks.")
        .def_prop_ro("block_count", [](const Message& self) { return self.blocks.count(); })
        .def_prop_ro(
            "part", [](const Message& self) { return self.slice.index; }, "Which part of each block, of `parts`.")
        .def_prop_ro("parts", [](const Message& self) { return self.slice.of; })
        .def_ro("pulled", &Message::pulled, "True for a pull from the memory of another rank of the node.");
}

void register_count(nb::module_& m) {
    nb::class_<LinkCount>(m, "LinkCount", "Messages and bytes across the edge between one group and the rest.")
        .def_ro("messages_out", &LinkCount::messages_out)
        .def_ro("messages_in", &LinkCount::messages_in)
        .def_ro("bytes_out", &LinkCount::bytes_out)
        .def_ro("bytes_in", &LinkCount::bytes_in);
    nb::class_<LevelCount>(m, "LevelCount", "Messages that leave a group of one level, each counted once.")
        .def_ro("level", &LevelCount::level)
        .def_ro("messages", &LevelCount::messages)
        .def_ro("bytes", &LevelCount::bytes)
        .def_ro("links", &LevelCount::links, "Links by group, in topology order.");
    nb::class_<PlanCount>(m, "PlanCount", "Messages and bytes that a plan puts on every link.")
        .def_ro("messages", &PlanCount::messages)
        .def_ro("bytes", &PlanCount::bytes)
        .def_ro("copied_bytes", &PlanCount::copied_bytes, "Inside of ranks.")
        .def_ro("pulled_bytes", &PlanCount::pulled_bytes, "Read from the memory of other ranks of the node.")
        .def_ro("reduced_bytes", &PlanCount::reduced_bytes, "Results of reduce and pull_reduce.")
        .def_ro("levels", &PlanCount::levels,
                "Outermost first, as in the job; then 'aggregator' where the plan has service positions.")
        .def_ro("busiest_level", &PlanCount::busiest_level,
                "Level of the bottleneck link, the slowest one (most bytes where no capacity is known); -1: none is "
                "crossed.")
        .def_ro("busiest_group", &PlanCount::busiest_group)
        .def_ro("busiest_s", &PlanCount::busiest_s, "Bytes over capacity of that link; 0: no capacity is known.")
        .def_ro("longest_chain", &PlanCount::longest_chain, "Messages on the critical path (depth of the plan).");
}

std::vector<std::int64_t> lengths(const PlanWithJob& self,
                                  const std::optional<std::variant<std::int64_t, std::vector<std::int64_t>>>& given) {
    if (!given && self.plan.contract) {
        std::vector<std::int64_t> out;
        for (std::int64_t b = 0; b < self.plan.contract->blocks(); ++b) out.push_back(self.plan.contract->bytes_of(b));
        return out;
    }
    if (!given) {
        if (self.plan.request.block_bytes < 0)
            base::fail("the plan was made without block_bytes: say count(block_bytes=...)");
        return {self.plan.request.block_bytes};
    }
    return lengths_of(*given);
}

const Program& program_of(const PlanWithJob& self, std::int32_t rank) {
    if (rank < 0 || rank >= std::ssize(self.plan.programs))
        base::fail("rank ", rank, " is outside of a plan of ", self.plan.programs.size(), " programs");
    return self.plan.programs[static_cast<std::size_t>(rank)];
}

plan::BlockOrder order_of(const PlanWithJob& self) { return self.plan.programs.front().order; }

std::int64_t bytes_of(const PlanWithJob& self, const Message& message) {
    const std::vector<std::int64_t> given = lengths(self, std::nullopt);
    const plan::BlockLengths lengths(self.plan.request, self.job, self.plan.programs.front().cut, given);
    std::vector<plan::Region> regions;
    for (const plan::Interval& interval : message.blocks.intervals()) regions.push_back({plan::Buffer::send, interval});
    return lengths.of({regions.data(), regions.size()}, message.slice);
}

std::map<std::string, std::int64_t> step_counts(const PlanWithJob& self) {
    std::map<std::string, std::int64_t> out;
    for (const Program& program : self.plan.programs)
        for (const plan::Step& step : program.steps) ++out[plan::name_of(step.kind)];
    return out;
}

}  // namespace

plan::Request make_request(const Job& job, std::string_view collective, std::int32_t root, std::int64_t block_bytes,
                           const Details& details) {
    if (root < 0 || root >= job.size()) base::fail("root ", root, " is outside of a job of ", job.size(), " ranks");
    plan::Request out{plan::collective_named(collective), Rank{root}, block_bytes};
    if (details.element_bytes < 1) base::fail("an element can't have ", details.element_bytes, " bytes");
    if (block_bytes > 0 && block_bytes % details.element_bytes != 0)
        base::fail(block_bytes, " bytes are no whole number of elements of ", details.element_bytes, " bytes");
    out.element_bytes = details.element_bytes;
    out.ordered = details.ordered;
    out.shared_memory = details.shared_memory;
    return out;
}

std::vector<std::int64_t> lengths_of(const std::variant<std::int64_t, std::vector<std::int64_t>>& given) {
    std::vector<std::int64_t> out = given.index() == 0 ? std::vector{std::get<0>(given)} : std::get<1>(given);
    for (const std::int64_t bytes : out)
        if (bytes < 0) base::fail("a block can't have ", bytes, " bytes");
    return out;
}

void register_plan(nb::module_& m) {
    m.def(
        "space_of", [](std::string_view name) { return name_of(plan::space_of(plan::collective_named(name))); },
        "collective"_a, "How the blocks of a collective are numbered, as Plan.space. Raises Error.");
    register_program(m);
    register_message(m);
    register_count(m);
    nb::class_<PlanWithJob>(m, "Plan", "The programs of all ranks of one collective.")
        .def(
            "__init__",
            [](PlanWithJob* self, const Job& job, std::string_view collective, std::string_view algorithm,
               std::int32_t root, std::int64_t block_bytes, bool ordered, bool shared_memory,
               std::int64_t element_bytes) {
                const plan::Request request =
                    make_request(job, collective, root, block_bytes, {ordered, shared_memory, element_bytes});
                new (self) PlanWithJob{job, collectives::make_plan(job, request, collectives::Spec::parse(algorithm))};
            },
            "job"_a, "collective"_a, "algorithm"_a, "root"_a = 0, "block_bytes"_a = -1, nb::kw_only(),
            "ordered"_a = false, "shared_memory"_a = false, "element_bytes"_a = 1,
            "`algorithm` as in docs/reference/algorithm-spec.md; block_bytes -1: sizes are not known to all ranks. "
            "ordered: the operation isn't commutative; shared_memory: ranks of a node may read each other's memory; "
            "element_bytes: of a reduction, whose elements are never split. Raises Error.")
        .def_ro("job", &PlanWithJob::job)
        .def_prop_ro("collective", [](const PlanWithJob& self) { return plan::name_of(self.plan.request.collective); })
        .def_prop_ro("algorithm", [](const PlanWithJob& self) { return self.plan.algorithm; })
        .def_prop_ro("root", [](const PlanWithJob& self) { return self.plan.request.root.value; })
        .def_prop_ro("block_bytes", [](const PlanWithJob& self) { return self.plan.request.block_bytes; })
        .def_prop_ro(
            "order", [](const PlanWithJob& self) { return name_of(order_of(self)); },
            "What the index of a block counts: 'topology' (positions) or 'rank'.")
        .def_prop_ro(
            "space", [](const PlanWithJob& self) { return name_of(plan::space_of(self.plan.request.collective)); },
            "How blocks are numbered: 'per_rank'; 'pairs', block s * p + d goes from s to d; 'cut', one vector in "
            "`cut` blocks; 'listed', the `cut` blocks of a composition; 'none'.")
        .def_prop_ro("cut", [](const PlanWithJob& self) { return self.plan.programs.front().cut; })
        .def_prop_ro(
            "lengths", [](const PlanWithJob& self) { return lengths(self, std::nullopt); },
            "What block_bytes=None stands for in `count`: one number, or one for each block. Raises Error.")
        .def_prop_ro(
            "scratch_bytes",
            [](const PlanWithJob& self) {
                std::vector<std::int64_t> out;
                const std::vector<std::int64_t> given = lengths(self, std::nullopt);
                const plan::BlockLengths of(self.plan.request, self.job, self.plan.programs.front().cut, given);
                for (const Program& program : self.plan.programs) {
                    std::int64_t total = 0;
                    for (const plan::Blocks& layer : program.scratch)
                        for (const plan::Interval& interval : layer.intervals())
                            for (std::int64_t b = interval.first; b < interval.end(); ++b) total += of[b];
                    out.push_back(total);
                }
                return out;
            },
            "Bytes of scratch of each rank, then of each service position, from the plan's block_bytes. Raises Error.")
        .def_prop_ro(
            "services", [](const PlanWithJob& self) { return std::ssize(self.plan.programs) - self.job.size(); },
            "Number of service positions: programs of aggregators, behind those of the ranks.")
        .def_prop_ro("step_counts", &step_counts, "Number of steps of all ranks by kind; kinds that occur.")
        .def("bytes_of", &bytes_of, "message"_a, "Bytes of a message, from the plan's block_bytes. Raises Error.")
        .def(
            "owner_of",
            [](const PlanWithJob& self, std::int64_t block) {
                if (block < 0 || block >= self.job.size())
                    base::fail("block ", block, " is outside of 0 to ", self.job.size() - 1);
                return plan::owner_of(self.job, order_of(self), block).value;
            },
            "block"_a, "Rank of an index that counts ranks or positions: see `order`. Raises Error.")
        .def(
            "verify", [](const PlanWithJob& self) { return plan::verify(self.plan, self.job); },
            "None when the plan is correct, else a sentence that names the first wrong rank, step and block.")
        .def(
            "count",
            [](const PlanWithJob& self,
               const std::optional<std::variant<std::int64_t, std::vector<std::int64_t>>>& block_bytes) {
                return plan::count(self.plan, self.job, lengths(self, block_bytes));
            },
            "block_bytes"_a = nb::none(),
            "Messages and bytes over every link; block_bytes is one number, one for each block, or None for the plan's "
            "own. Raises Error.")
        .def(
            "messages", [](const PlanWithJob& self) { return plan::messages_of(self.plan); },
            "All messages by time, then sender, then receiver.")
        .def(
            "program", [](const PlanWithJob& self, std::int32_t rank) { return program_of(self, rank); }, "rank"_a,
            "Raises Error.")
        .def(
            "text", [](const PlanWithJob& self, std::int32_t rank) { return plan::to_text(program_of(self, rank)); },
            "rank"_a, "One rank's steps, a line each. Raises Error.")
        .def(
            "to_json", [](const PlanWithJob& self) { return to_dict(plan::to_json(self.plan, self.job)); },
            nb::sig("def to_json(self) -> dict[str, typing.Any]"), "Format palmette-plan, version 2.");
}

}  // namespace palmette::bindings
