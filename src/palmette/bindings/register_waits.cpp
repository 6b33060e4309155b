// Wait states of a recorded job.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "palmette/bindings/ask_bounds.hpp"
#include "palmette/bindings/register.hpp"
#include "palmette/trace/overview.hpp"

namespace palmette::bindings {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// Waits, and the names that their numbers stand for.
struct NamedWaits {
    trace::Waits waits;
    std::vector<std::string> functions, paths;
    std::vector<std::string> kinds;   ///< by function
    std::vector<bool> judged;         ///< by function: whether its calls' waits are looked for
    std::vector<std::int32_t> ranks;  ///< by process
    std::uint64_t calls = 0, dropped = 0;
};

NamedWaits named(trace::Waits waits, trace::Trace& trace) {
    NamedWaits out;
    out.waits = std::move(waits);
    for (const auto& process : trace.processes) {
        out.ranks.push_back(process.rank);
        out.dropped += process.dropped;
    }
    for (const auto& row : out.waits.rows) out.calls += row.split.calls;
    for (const trace::Kind kind : trace.kinds) {
        out.kinds.emplace_back(trace::name_of(kind));
        out.judged.push_back(kind != trace::Kind::other && kind != trace::Kind::neighbours);
    }
    out.functions = std::move(trace.functions);
    out.paths = std::move(trace.paths);
    return out;
}

NamedWaits find(const std::vector<trace::TraceFile>& files) {
    trace::Trace trace;
    trace::Waits waits;
    {
        nb::gil_scoped_release released;
        trace = trace::read_trace(files);
        waits = trace::find_waits(trace);
    }
    return named(std::move(waits), trace);
}

struct UnservedGroup {
    std::string function;
    std::vector<std::int32_t> ranks;
    trace::UnservedCollectives collectives;
};

struct TraceView {
    NamedWaits waits;
    trace::Overview overview;
    std::vector<UnservedGroup> unserved;
};

TraceView view(const std::vector<trace::TraceFile>& files, const trace::OverviewOptions& options,
               const nb::object& bound_of) {
    TraceView out;
    trace::Trace trace;
    trace::OverviewWithWaits viewed;
    const trace::BoundOf ask = ask_bounds(trace, bound_of);
    {
        nb::gil_scoped_release released;
        trace = trace::read_trace(files);
        viewed = trace::view(trace, options, ask);
    }
    out.overview = std::move(viewed.overview);
    for (auto& one : out.overview.unserved)
        out.unserved.push_back({trace.functions[one.function], members(trace, one.communicator), std::move(one)});
    out.waits = named(std::move(viewed.waits), trace);
    return out;
}

using Columns = nb::typed<nb::dict, nb::str, nb::bytes>;

template <class Item>
nb::bytes raw(const std::vector<Item>& items) {
    return nb::bytes(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(Item));
}

/// One member of each item, as raw values of type Value.
template <class Value, class Item, class Get>
nb::bytes column(const std::vector<Item>& items, Get get) {
    std::vector<Value> values;
    values.reserve(items.size());
    for (const Item& item : items) values.push_back(static_cast<Value>(get(item)));
    return raw(values);
}

Columns columns_of(const std::vector<trace::DrawnCall>& calls) {
    using trace::DrawnCall;
    Columns out;
    out["begin_ns"] = column<std::int64_t>(calls, [](const DrawnCall& one) { return one.begin_ns; });
    out["length_ns"] = column<std::int64_t>(calls, [](const DrawnCall& one) { return one.length_ns; });
    out["waiting_ns"] = column<std::int64_t>(calls, [](const DrawnCall& one) { return one.waiting_ns; });
    out["process"] = column<std::int32_t>(calls, [](const DrawnCall& one) { return one.process; });
    out["waits_for"] = column<std::int32_t>(calls, [](const DrawnCall& one) { return one.waits_for; });
    out["function"] = column<std::int32_t>(calls, [](const DrawnCall& one) { return one.function; });
    out["path"] = column<std::int32_t>(calls, [](const DrawnCall& one) { return one.path; });
    out["bytes"] = column<double>(calls, [](const DrawnCall& one) { return one.bytes; });
    return out;
}

Columns columns_of(const std::vector<trace::DrawnMessage>& messages) {
    using trace::DrawnMessage;
    Columns out;
    out["sent_ns"] = column<std::int64_t>(messages, [](const DrawnMessage& one) { return one.sent_ns; });
    out["received_ns"] = column<std::int64_t>(messages, [](const DrawnMessage& one) { return one.received_ns; });
    out["from"] = column<std::int32_t>(messages, [](const DrawnMessage& one) { return one.from; });
    out["to"] = column<std::int32_t>(messages, [](const DrawnMessage& one) { return one.to; });
    out["bytes"] = column<double>(messages, [](const DrawnMessage& one) { return one.bytes; });
    return out;
}

void register_view(nb::module_& m) {
    using trace::Overview;
    nb::class_<UnservedGroup>(m, "UnservedCollectives",
                              "Collectives that the MPI itself did, of one function, communicator, root and size.")
        .def_ro("function", &UnservedGroup::function)
        .def_ro("ranks", &UnservedGroup::ranks,
                "Ranks of MPI_COMM_WORLD, by rank in the communicator; empty: not all are recorded.")
        .def_prop_ro(
            "root", [](const UnservedGroup& self) { return self.collectives.root; },
            "Rank of the root in the communicator; -1: none.")
        .def_prop_ro(
            "bytes", [](const UnservedGroup& self) { return self.collectives.bytes; },
            "Bytes of the root's call, or rank 0's.")
        .def_prop_ro(
            "by_time", [](const UnservedGroup& self) { return self.collectives.by_time; },
            "How many began in each bin of links.");
    nb::class_<TraceView>(m, "TraceView", "What a page draws of a trace. Columns are raw values in native byte order.")
        .def_ro("waits", &TraceView::waits)
        .def_ro("unserved", &TraceView::unserved)
        .def_prop_ro("begin_ns", [](const TraceView& self) { return self.overview.begin_ns; })
        .def_prop_ro("end_ns", [](const TraceView& self) { return self.overview.end_ns; })
        .def_prop_ro(
            "row_of", [](const TraceView& self) { return self.overview.row_of; }, "Row of each process.")
        .def_prop_ro(
            "in_row", [](const TraceView& self) { return self.overview.in_row; }, "Processes, by row.")
        .def_prop_ro("rows", [](const TraceView& self) { return self.overview.rows; })
        .def_prop_ro("bins", [](const TraceView& self) { return self.overview.bins; })
        .def_prop_ro(
            "mpi", [](const TraceView& self) { return raw(self.overview.mpi); },
            "uint8 by row and bin: share of time in MPI.")
        .def_prop_ro(
            "waiting", [](const TraceView& self) { return raw(self.overview.waiting); },
            "uint8 by row and bin: share of time waiting for others.")
        .def_prop_ro(
            "function", [](const TraceView& self) { return raw(self.overview.function); },
            "uint8 by row and bin: a function with much of the time, if one has more than half it; 255: none.")
        .def_prop_ro(
            "calls", [](const TraceView& self) { return columns_of(self.overview.calls); },
            "The longest, by begin: int64 begin_ns, length_ns, waiting_ns; int32 process, waits_for (a process), "
            "function, path; float64 bytes.")
        .def_prop_ro("calls_in_all", [](const TraceView& self) { return self.overview.calls_in_all; })
        .def_prop_ro(
            "messages", [](const TraceView& self) { return columns_of(self.overview.messages); },
            "Messages waited for longest, by begin: int64 sent_ns, received_ns; int32 from, to (processes); float64 "
            "bytes.")
        .def_prop_ro("messages_in_all", [](const TraceView& self) { return self.overview.messages_in_all; })
        .def_prop_ro(
            "link_out", [](const TraceView& self) { return raw(self.overview.link_out); },
            "float64 by level, group and bin: bytes that leave a group.")
        .def_prop_ro("link_in", [](const TraceView& self) { return raw(self.overview.link_in); });
    m.def(
        "view_trace",
        [](const std::vector<trace::TraceFile>& files, std::vector<std::vector<std::int32_t>> groups, std::int32_t rows,
           std::int32_t bins, std::size_t calls, std::size_t messages, std::int32_t link_bins,
           const nb::object& bound_of) {
            if (rows < 1 || bins < 1 || link_bins < 1)
                throw nb::value_error("rows, bins and link_bins: give at least 1 each");
            return view(files, {rows, bins, calls, messages, link_bins, std::move(groups)}, bound_of);
        },
        "files"_a, "groups"_a = std::vector<std::vector<std::int32_t>>{}, "rows"_a = 128, "bins"_a = 2048,
        "calls"_a = 40000, "messages"_a = 10000, "link_bins"_a = 64, "bound_of"_a = nb::none(),
        "Wait states as find_waits has them, and what a page draws, in bounded memory. groups: by level of the "
        "machine, outermost first, and by rank, the group that it sits in. bound_of(function, ranks, root, bytes) -> "
        "seconds is asked once for each kind of collective that the MPI itself did. Cost: as find_waits. Raises "
        "Error.");
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
        .def_ro("bytes", &Split::bytes)
        .def_ro("seconds", &Split::seconds)
        .def_ro("waiting_s", &Split::waiting_s, "Seconds of waiting for a rank that came late.")
        .def_ro("bound_s", &Split::bound_s, "Physical limit of the time without waiting, where it is known.")
        .def_ro("excess_s", &Split::excess_s, "Time without waiting beyond bound_s, until the first rank had finished.")
        .def_ro("completion_s", &Split::completion_s, "After the first rank had finished.");

    nb::class_<Row>(m, "WaitRow", "Calls of one function from one place by one process.")
        .def_ro("function", &Row::function, "Index into functions.")
        .def_ro("path", &Row::path, "Index into paths.")
        .def_ro("process", &Row::process, "Index into ranks.")
        .def_ro("split", &Row::split)
        .def_ro("longest_wait_s", &Row::longest_wait_s)
        .def_ro("longest_s", &Row::longest_s);

    nb::class_<Cause>(m, "WaitCause", "Waiting of all ranks together at one place, because of one late rank.")
        .def_ro("function", &Cause::function, "Function of the calls that waited: index into functions.")
        .def_ro("path", &Cause::path)
        .def_ro("process", &Cause::process, "Process that came late: index into ranks.")
        .def_ro("instances", &Cause::instances)
        .def_ro("waiters", &Cause::waiters, "Calls that waited, over all instances.")
        .def_ro("waiting_s", &Cause::waiting_s)
        .def_ro("late_s", &Cause::late_s, "Behind the one before it, over all instances.")
        .def_ro("worst_begin_ns", &Cause::worst_begin_ns, "The longest single wait, by the common clock.")
        .def_ro("worst_end_ns", &Cause::worst_end_ns);

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
            "useful_s", [](const NamedWaits& self) { return self.waits.useful_s; }, "Outside of MPI, by process.")
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
        .def_ro("kinds", &NamedWaits::kinds,
                "By function, how it makes ranks depend on each other: barrier, all_to_all, one_to_all, all_to_one, "
                "scan, neighbours, send, receive, wait, test, init, other.")
        .def_ro("judged", &NamedWaits::judged, "By function: whether waits of its calls are looked for.")
        .def_ro("paths", &NamedWaits::paths, "Frames from the innermost on: MODULE@BUILD-ID+OFFSET with ; between.")
        .def_ro("ranks", &NamedWaits::ranks)
        .def_ro("calls", &NamedWaits::calls)
        .def_ro("dropped", &NamedWaits::dropped, "Calls of which only sums remain.");

    m.def("find_waits", &find, "files"_a,
          "Wait states of a recorded job by Scalasca's definitions; nonblocking and persistent calls are judged by the "
          "call that completes them. Cost: O(calls log calls). Raises Error.");
    register_view(m);
}

}  // namespace palmette::bindings
