// Wait states of a recorded job.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "palmette/bindings/register.hpp"
#include "palmette/trace/waits.hpp"

namespace palmette::bindings {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// Waits, and the names that their numbers stand for.
struct NamedWaits {
    trace::Waits waits;
    std::vector<std::string> functions, paths;
    std::vector<bool> judged;         ///< by function: whether its calls' waits are looked for
    std::vector<std::int32_t> ranks;  ///< by process
    std::uint64_t calls = 0, dropped = 0;
};

NamedWaits find(const std::vector<trace::TraceFile>& files) {
    trace::Trace trace;
    NamedWaits out;
    {
        nb::gil_scoped_release released;
        trace = trace::read_trace(files);
        out.waits = trace::find_waits(trace);
    }
    for (const auto& process : trace.processes) {
        out.ranks.push_back(process.rank);
        out.dropped += process.dropped;
    }
    for (const auto& row : out.waits.rows) out.calls += row.split.calls;
    for (const trace::Kind kind : trace.kinds)
        out.judged.push_back(kind != trace::Kind::other && kind != trace::Kind::neighbours);
    out.functions = std::move(trace.functions);
    out.paths = std::move(trace.paths);
    return out;
}

}  // namespace

void register_waits(nb::module_& m) {
    using trace::Cause;
    using trace::Efficiencies;
    using trace::Row;
    using trace::Split;
    using trace::TraceFile;

    nb::class_<TraceFile>(m, "TraceFile", "A node's recording, and what to add to its times for the common clock.")
        .def(
            "__init__",
            [](TraceFile* self, std::string path, std::int64_t first_real_ns, std::int64_t first_offset_ns,
               std::int64_t last_real_ns, std::int64_t last_offset_ns, std::int64_t error_ns) {
                new (self)
                    TraceFile{std::move(path), first_real_ns, first_offset_ns, last_real_ns, last_offset_ns, error_ns};
            },
            "path"_a, "first_real_ns"_a = 0, "first_offset_ns"_a = 0, "last_real_ns"_a = 0, "last_offset_ns"_a = 0,
            "error_ns"_a = 0, "Between both points the offset is interpolated.");

    nb::class_<Split>(m, "WaitSplit", "Where the time of calls went: the last four add up to `seconds`.")
        .def_ro("calls", &Split::calls)
        .def_ro("seconds", &Split::seconds)
        .def_ro("waiting_s", &Split::waiting_s, "For a rank that came late.")
        .def_ro("bound_s", &Split::bound_s, "Of the rest, what physics needs at least, where that is known.")
        .def_ro("excess_s", &Split::excess_s, "Of the rest, until the first rank had finished.")
        .def_ro("completion_s", &Split::completion_s, "After the first rank had finished.");

    nb::class_<Row>(m, "WaitRow", "Calls of one function from one place by one process.")
        .def_ro("function", &Row::function, "Index into functions.")
        .def_ro("path", &Row::path, "Index into paths.")
        .def_ro("process", &Row::process, "Index into ranks.")
        .def_ro("split", &Row::split)
        .def_ro("longest_wait_s", &Row::longest_wait_s);

    nb::class_<Cause>(m, "WaitCause", "Waiting of all ranks together at one place, because of one late rank.")
        .def_ro("function", &Cause::function, "Of the calls that waited: index into functions.")
        .def_ro("path", &Cause::path)
        .def_ro("process", &Cause::process, "That came late: index into ranks.")
        .def_ro("instances", &Cause::instances)
        .def_ro("waiters", &Cause::waiters, "Calls that waited, over all instances.")
        .def_ro("waiting_s", &Cause::waiting_s)
        .def_ro("late_s", &Cause::late_s, "Behind the one before it, over all instances.");

    nb::class_<Efficiencies>(m, "Efficiencies", "POP's: parallel = load_balance x communication.")
        .def_ro("time_s", &Efficiencies::time_s)
        .def_ro("useful_s", &Efficiencies::useful_s, "Outside of MPI, mean over processes.")
        .def_ro("longest_useful_s", &Efficiencies::longest_useful_s)
        .def_ro("parallel", &Efficiencies::parallel)
        .def_ro("load_balance", &Efficiencies::load_balance)
        .def_ro("communication", &Efficiencies::communication);

    nb::class_<NamedWaits>(m, "Waits", "Wait states of a job.")
        .def_prop_ro("rows", [](const NamedWaits& self) { return self.waits.rows; })
        .def_prop_ro(
            "causes", [](const NamedWaits& self) { return self.waits.causes; }, "The costliest first.")
        .def_prop_ro("efficiencies", [](const NamedWaits& self) { return self.waits.efficiencies; })
        .def_prop_ro(
            "incomplete_collectives", [](const NamedWaits& self) { return self.waits.incomplete_collectives; },
            "Instances of which a rank's call isn't recorded.")
        .def_prop_ro(
            "unmatched_messages", [](const NamedWaits& self) { return self.waits.unmatched_messages; },
            "Receives whose send isn't recorded.")
        .def_prop_ro(
            "clock_violations", [](const NamedWaits& self) { return self.waits.clock_violations; },
            "Receives that ended before their send began.")
        .def_prop_ro(
            "clock_error_s",
            [](const NamedWaits& self) { return static_cast<double>(self.waits.clock_error_ns) * 1e-9; },
            "Shorter waits mean nothing.")
        .def_ro("functions", &NamedWaits::functions)
        .def_ro("judged", &NamedWaits::judged, "By function: whether waits of its calls are looked for.")
        .def_ro("paths", &NamedWaits::paths, "Frames from the innermost on: MODULE@BUILD-ID+OFFSET with ; between.")
        .def_ro("ranks", &NamedWaits::ranks)
        .def_ro("calls", &NamedWaits::calls)
        .def_ro("dropped", &NamedWaits::dropped, "Calls of which only sums remain.");

    m.def("find_waits", &find, "files"_a,
          "Wait states of a recorded job by Scalasca's definitions; nonblocking and persistent calls are judged by the "
          "call that completes them. Cost: O(calls log calls). Raises Error.");
}

}  // namespace palmette::bindings
