// Replays of a recorded job with what other plans, placements or networks would cost.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "palmette/bindings/ask_bounds.hpp"
#include "palmette/bindings/register.hpp"
#include "palmette/trace/replay.hpp"
#include "palmette/trace/sent.hpp"

namespace palmette::bindings {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// Sender and receiver by rank, what a message takes by the model as it was, and as it would be.
using MessagePrice = std::tuple<std::int32_t, std::int32_t, double, double>;

struct WhatIf {
    trace::Replay measured;
    std::vector<trace::Replay> changed;  ///< by scale
    std::vector<std::string> functions, paths;
    std::vector<std::int32_t> ranks;
};

WhatIf what_if(const std::vector<trace::TraceFile>& files, const nb::object& price_of,
               const std::vector<MessagePrice>& messages, const std::vector<double>& scales) {
    WhatIf out;
    const nb::gil_scoped_release released;
    const trace::Trace trace = trace::read_trace(files);
    std::unordered_map<std::int32_t, std::int32_t> process_of;
    for (std::size_t p = 0; p < trace.processes.size(); ++p)
        process_of[trace.processes[p].rank] = static_cast<std::int32_t>(p);
    trace::Changes changes;
    changes.collective = [&](const trace::CollectiveKind& kind) -> trace::Price {
        const nb::gil_scoped_acquire acquired;
        const auto ranks = members(trace, kind.communicator);
        if (ranks.empty() || price_of.is_none()) return {};
        const auto [seconds, was_s, by_ratio] = nb::cast<std::tuple<double, double, bool>>(
            price_of(trace.functions[kind.function], ranks, kind.root, kind.bytes,
                     kind.plan < trace.plans.size() ? trace.plans[kind.plan].algorithm : std::string()));
        return {seconds, was_s, by_ratio};
    };
    for (const auto& [from, to, was_s, seconds] : messages) {
        const auto sender = process_of.find(from), receiver = process_of.find(to);
        if (sender == process_of.end() || receiver == process_of.end()) continue;
        changes.messages[trace::Changes::pair(sender->second, receiver->second)] = {seconds, was_s, false};
    }
    out.measured = trace::replay(trace, trace::Costs::measured);
    for (const double scale : scales) {
        changes.scale = scale;
        out.changed.push_back(trace::replay(trace, changes));
    }
    for (const auto& process : trace.processes) out.ranks.push_back(process.rank);
    out.functions = trace.functions;
    out.paths = trace.paths;
    return out;
}

std::vector<std::tuple<std::int32_t, std::int32_t, std::uint64_t, double>> sent_messages(
    const std::vector<trace::TraceFile>& files) {
    const nb::gil_scoped_release released;
    const trace::Trace trace = trace::read_trace(files);
    std::vector<std::tuple<std::int32_t, std::int32_t, std::uint64_t, double>> out;
    for (const trace::PairTraffic& one : trace::sent(trace))
        out.emplace_back(trace.processes[static_cast<std::size_t>(one.from)].rank,
                         trace.processes[static_cast<std::size_t>(one.to)].rank, one.messages, one.bytes);
    return out;
}

/// With what Python knows of a trace: names instead of numbers.
struct LinkUse {
    std::vector<std::tuple<std::string, std::string, double, double>> users;
    std::vector<
        std::tuple<std::string, std::string, std::vector<std::int32_t>, std::int32_t, std::uint64_t, std::uint64_t>>
        unserved;
};

LinkUse link_use(const std::vector<trace::TraceFile>& files, const std::vector<std::int32_t>& group_of,
                 std::int32_t group) {
    const nb::gil_scoped_release released;
    const trace::Trace trace = trace::read_trace(files);
    LinkUse out;
    const trace::LinkUse found = trace::link_use(trace, group_of, group);
    for (const trace::LinkUser& one : found.users)
        out.users.emplace_back(trace.functions[one.function], trace.paths[one.path], one.bytes_out, one.bytes_in);
    for (const trace::OwnCollectives& one : found.unserved)
        out.unserved.emplace_back(trace.functions[one.function], trace.paths[one.path],
                                  members(trace, one.communicator), one.root, one.bytes, one.calls);
    return out;
}

}  // namespace

void register_what_if(nb::module_& m) {
    using trace::InCalls;
    nb::class_<InCalls>(m, "ReplayedCalls", "Time in calls of one function from one place by one process.")
        .def_ro("function", &InCalls::function, "Index into functions.")
        .def_ro("path", &InCalls::path)
        .def_ro("process", &InCalls::process, "Index into ranks.")
        .def_ro("measured_s", &InCalls::measured_s)
        .def_ro("replayed_s", &InCalls::replayed_s);
    nb::class_<WhatIf>(m, "TraceWhatIf", "A recorded job with other costs of communication.")
        .def_ro("measured", &WhatIf::measured, "Replay with measured costs.")
        .def_ro("changed", &WhatIf::changed, "Replays with changed costs, by scale.")
        .def_ro("functions", &WhatIf::functions)
        .def_ro("paths", &WhatIf::paths, "As Waits has them.")
        .def_ro("ranks", &WhatIf::ranks);
    m.def(
        "what_if", &what_if, "files"_a, "price_of"_a, "messages"_a, "scales"_a,
        "Replays a recorded job with other prices. price_of(function, ranks, root, bytes, algorithm) -> (seconds, "
        "was_s, by_ratio) is asked once for each kind of collective, with an empty algorithm where the MPI itself did "
        "it: what it takes, and what the same model says of it as it was; 0: not known; seconds below 0: as measured; "
        "whether its time changes by the ratio of both and not by their difference. "
        "messages: (from, to, was_s, seconds) of one message between two ranks. scales: what predicted times are "
        "multiplied by (what is known as it was: the difference), a replay for each. Cost: as causes_of. Raises "
        "Error.");
    nb::class_<LinkUse>(m, "LinkUse", "Which calls have sent over a link.")
        .def_ro("users", &LinkUse::users, "(function, path, bytes out, bytes in), where it is known who sent to whom.")
        .def_ro("unserved", &LinkUse::unserved,
                "(function, path, ranks, root, bytes, calls) of collectives that the MPI itself did.");
    m.def("link_use", &link_use, "files"_a, "group_of"_a, "group"_a,
          "What calls have sent over the link out of a group. group_of: by rank. Cost: O(calls). Raises Error.");
    m.def("sent_messages", &sent_messages, "files"_a,
          "(from, to, messages, bytes) of what the program itself sent, by ranks. Cost: O(calls). Raises Error.");
}

}  // namespace palmette::bindings
