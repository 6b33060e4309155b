// Replays of a recorded job, its critical path, and what made ranks wait.
#include <malloc.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <future>
#include <optional>

#include "palmette/bindings/ask_bounds.hpp"
#include "palmette/bindings/register.hpp"
#include "palmette/trace/causes.hpp"
#include "palmette/trace/patterns.hpp"

namespace palmette::bindings {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

struct Causes {
    trace::Replay measured, ideal, bound;
    std::optional<trace::Replay> planned, served;
    trace::CriticalPath path;
    trace::Delays delays;
    std::vector<trace::Chain> chains;
    std::vector<trace::MessageRuns> message_runs;
    std::vector<double> without_s;
    std::int64_t begin_ns = 0;
    trace::JobContexts contexts;
    std::vector<trace::ProcessorTime> processor_times;
    std::vector<std::string> functions, paths;
    std::vector<std::int32_t> ranks;
};

/// What a replay has freed lies between what stays, and other threads can't use it.
void give_back_memory() {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

Causes causes_of(const std::vector<trace::TraceFile>& files, const nb::object& bound_of, std::size_t most,
                 const nb::object& predicted_of) {
    Causes out;
    trace::Trace trace;
    const trace::BoundOf ask = ask_bounds(trace, bound_of);
    const trace::PredictedOf predict = [&](const trace::CollectiveKind& kind) {
        const nb::gil_scoped_acquire acquired;
        const auto ranks = members(trace, kind.communicator);
        return ranks.empty() ? 0.0
                             : nb::cast<double>(predicted_of(trace.functions[kind.function], ranks, kind.root,
                                                             kind.bytes, trace.plans[kind.plan].algorithm));
    };
    const nb::gil_scoped_release released;
    trace = trace::read_trace(files, true);
    // Where no bound is known, it is the ideal network.
    const bool has_bounds = !bound_of.is_none() || std::any_of(trace.plans.begin(), trace.plans.end(),
                                                               [](const auto& plan) { return plan.bound_s > 0; });
    std::future<void> others;
    {
        trace::WaitGraph awaited;
        out.measured = trace::replay(trace, trace::Costs::measured, {}, &awaited);
        give_back_memory();
        // Behind the one that takes most memory.
        others = std::async(std::launch::async, [&] {
            out.message_runs = trace::message_runs(trace);
            out.ideal = trace::replay(trace, trace::Costs::ideal);
            out.bound = has_bounds ? trace::replay(trace, trace::Costs::bound, ask) : out.ideal;
            if (predicted_of.is_none() || trace.plans.size() <= 1) return;
            out.planned = trace::replay(trace, trace::Costs::planned, ask, nullptr, predict);
            out.served = trace::replay(trace, trace::Costs::served, ask);
        });
        out.begin_ns = awaited.begin_ns;
        out.path = trace::critical_path(trace, awaited);
        out.delays = trace::delay_costs(trace, awaited);
        out.chains = trace::chains(trace, awaited);
    }
    for (std::size_t i = 0; i < std::min(most, out.delays.rows.size()); ++i)
        out.without_s.push_back(trace::time_without(trace, out.delays.rows[i]));
    if (trace.has_samples())
        out.processor_times = trace::processor_times(
            trace, out.begin_ns, out.begin_ns + static_cast<std::int64_t>(out.measured.measured_s * 1e9));
    others.get();
    for (const auto& process : trace.processes) out.ranks.push_back(process.rank);
    out.functions = std::move(trace.functions);
    out.paths = std::move(trace.paths);
    out.contexts = std::move(trace.contexts);
    return out;
}

}  // namespace

void register_causes(nb::module_& m) {
    using trace::Chain;
    using trace::Delay;
    using trace::MessageRuns;
    using trace::OnPath;
    using trace::Replay;
    using trace::Stretch;
    using trace::UnmodelledFunction;

    nb::class_<UnmodelledFunction>(m, "UnmodelledCalls",
                                   "Calls whose dependencies are unknown: they never wait in a replay.")
        .def_ro("function", &UnmodelledFunction::function, "Index into functions.")
        .def_ro("calls", &UnmodelledFunction::calls)
        .def_ro("seconds", &UnmodelledFunction::seconds);
    nb::class_<Replay>(m, "TraceReplay", "A recorded job, run again with other costs of communication.")
        .def_ro("time_s", &Replay::time_s, "From the first end of MPI_Init to the last begin of MPI_Finalize.")
        .def_ro("measured_s", &Replay::measured_s, "Seconds between the same two points of the recorded run.")
        .def_ro("ends_s", &Replay::ends_s, "End of each process, from the beginning of time_s.")
        .def_ro("without_counterpart", &Replay::without_counterpart,
                "Messages and collectives of which another rank's call isn't recorded.")
        .def_ro("forced", &Replay::forced, "Calls that would have waited for ever.")
        .def_ro("unmodelled", &Replay::unmodelled, "The longest first.")
        .def_ro("in_calls", &Replay::in_calls, "By function, path and process; none of that with measured costs.");
    nb::class_<OnPath>(m, "OnCriticalPath", "Calls of one function from one place by one process on the critical path.")
        .def_ro("function", &OnPath::function, "Index into functions; without calls: after the last one.")
        .def_ro("path", &OnPath::path)
        .def_ro("process", &OnPath::process, "Index into ranks.")
        .def_ro("calls", &OnPath::calls)
        .def_ro("in_call_s", &OnPath::in_call_s)
        .def_ro("before_s", &OnPath::before_s, "Computation between the call before and these.");
    nb::class_<Stretch>(m, "CriticalStretch", "A stretch of the critical path on one process, by the common clock.")
        .def_ro("process", &Stretch::process)
        .def_ro("begin_ns", &Stretch::begin_ns)
        .def_ro("end_ns", &Stretch::end_ns);
    nb::class_<Delay>(m, "Delay", "What made others wait: calls, or the computation before them.")
        .def_ro("function", &Delay::function, "Index into functions.")
        .def_ro("path", &Delay::path)
        .def_ro("process", &Delay::process, "Index into ranks.")
        .def_ro("in_call", &Delay::in_call)
        .def_ro("delayed_s", &Delay::delayed_s, "Longer than the ranks that waited.")
        .def_ro("short_term_s", &Delay::short_term_s, "Waiting that it caused at once.")
        .def_ro("long_term_s", &Delay::long_term_s, "Waiting that this waiting caused.");
    nb::class_<Chain>(m, "WaitChain",
                      "Calls at one place in which each rank waits for a message of one that has waited itself.")
        .def_ro("function", &Chain::function, "Index into functions: of the calls in which the last ones wait.")
        .def_ro("path", &Chain::path)
        .def_ro("instances", &Chain::instances)
        .def_ro("waits", &Chain::waits, "Calls that waited in them.")
        .def_ro("waiting_s", &Chain::waiting_s, "Seconds of waiting, with collectives that waited for a chain's end.")
        .def_ro("in_between_s", &Chain::in_between_s, "From the message that was waited for to the next one.")
        .def_ro("processes", &Chain::processes, "Indices into ranks: of the longest one, in order.");
    nb::class_<MessageRuns>(m, "MessageRuns", "Small messages in a row from one place to the same rank each, by place.")
        .def_ro("function", &MessageRuns::function, "Index into functions.")
        .def_ro("path", &MessageRuns::path)
        .def_ro("runs", &MessageRuns::runs)
        .def_ro("messages", &MessageRuns::messages)
        .def_ro("bytes", &MessageRuns::bytes)
        .def_ro("seconds", &MessageRuns::seconds, "In MPI, from the first to the last message of each run.")
        .def_ro("longest", &MessageRuns::longest, "Messages of the longest run.")
        .def_ro("longest_bytes", &MessageRuns::longest_bytes, "Bytes of the longest run's messages together.")
        .def_ro("sender", &MessageRuns::from, "Index into ranks: of the longest run.")
        .def_ro("receiver", &MessageRuns::to);
    nb::class_<Causes>(m, "TraceCauses", "Why a job took as long.")
        .def_ro("measured", &Causes::measured,
                "Replay with measured costs: the recorded time, where no dependency is missing.")
        .def_ro("ideal", &Causes::ideal, "Replay with communication that takes no time.")
        .def_ro("bound", &Causes::bound, "Replay with collectives that take what physics needs.")
        .def_ro("planned", &Causes::planned,
                "As `bound`, but collectives that palmette served take what the model predicts for their plans. None: "
                "not asked for, or none was served.")
        .def_ro("served", &Causes::served, "As `bound`, but collectives that palmette served take what was measured.")
        .def_prop_ro(
            "on_path", [](const Causes& self) { return self.path.rows; },
            "Time on the critical path, by function, path and process.")
        .def_prop_ro(
            "stretches", [](const Causes& self) { return self.path.stretches; },
            "Stretches of the critical path in order of time.")
        .def_prop_ro(
            "delays", [](const Causes& self) { return self.delays.rows; }, "The costliest first.")
        .def_prop_ro(
            "waiting_s", [](const Causes& self) { return self.delays.waiting_s; }, "Waiting of all ranks together.")
        .def_prop_ro(
            "unexplained_s", [](const Causes& self) { return self.delays.unexplained_s; },
            "Waiting for which no delay is found.")
        .def_prop_ro(
            "late", [](const Causes& self) { return self.delays.works; },
            "What late ranks did, by samples; none where there are none.")
        .def_ro("chains", &Causes::chains, "Ranks that wait for one another's messages, the costliest place first.")
        .def_ro("message_runs", &Causes::message_runs, "Many small messages where one might do.")
        .def_ro("processor_times", &Causes::processor_times,
                "By process, from the first end of MPI_Init to the last begin of MPI_Finalize; none without samples.")
        .def_ro("contexts", &Causes::contexts, nb::rv_policy::reference_internal, "Calling contexts of the samples.")
        .def_ro("without_s", &Causes::without_s, "What the job would take without each of the first delays.")
        .def_ro("functions", &Causes::functions)
        .def_ro("paths", &Causes::paths, "As Waits has them.")
        .def_ro("ranks", &Causes::ranks);
    m.def("causes_of", &causes_of, "files"_a, "bound_of"_a = nb::none(), "most"_a = 0, "predicted_of"_a = nb::none(),
          "Replays of a recorded job with other costs, its critical path and its delay costs. bound_of as view_trace "
          "has it; most: for how many delays without_s is found, a replay each. predicted_of(function, ranks, root, "
          "bytes, algorithm) -> seconds, 0 where that isn't known, of collectives that palmette served. Cost: O(calls "
          "log calls) time; memory "
          "O(messages + waits). Raises Error.");
}

}  // namespace palmette::bindings
