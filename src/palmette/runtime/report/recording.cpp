#include "palmette/runtime/report/recording.hpp"

#include <cmath>
#include <map>
#include <vector>

#include "palmette/plan/space.hpp"
#include "palmette/runtime/report/reporting.hpp"
#include "palmette/runtime/state/work.hpp"
#include "palmette/trace/served.hpp"

namespace palmette::runtime {
namespace {

/// By receiver.
using Sends = std::map<std::int32_t, trace::PlanSend>;

/// Adds the messages of `times` runs of a bound program; what ranks of a node read in each other's memory isn't one,
/// and what goes to aggregators isn't between ranks.
void add_sends(Sends& to, const execute::BoundProgram& program, std::uint32_t times) {
    for (const execute::BoundStep& step : program.steps) {
        if (step.kind != plan::StepKind::send) continue;
        if (step.transport == MpiExecutor::aggregation_index) continue;
        trace::PlanSend& send = to[step.peer];
        send.peer = step.peer;
        send.messages += times;
        send.bytes += static_cast<std::uint64_t>(step.bytes) * times;
    }
}

/// What a call sends by a plan whose calls are alike; else its receivers.
Sends sends_of(const CachedPlan& plan, bool alike) {
    Sends found;
    if (alike) {
        const Way::Runs runs = plan.way->runs(plan);
        add_sends(found, *runs.program, runs.times);
        if (runs.rest) add_sends(found, *runs.rest, 1);
        return found;
    }
    for (const plan::Step& step : plan.program.steps)
        if (step.kind == plan::StepKind::send) found[step.peer.value].peer = step.peer.value;
    return found;
}

std::vector<trace::PlanSend> listed(const Sends& sends) {
    std::vector<trace::PlanSend> out;
    for (const auto& [peer, send] : sends) out.push_back(send);
    return out;
}

bool calls_are_alike(const CachedPlan& plan) {
    return select::sizes_alike(plan.key.function) && plan.key.block_bytes >= 0;
}

std::uint32_t add_plan(const CallEvent& call) {
    const CachedPlan& plan = *call.plan;
    const Communicator& state = *call.state;
    const bool alike = calls_are_alike(plan);
    const double bound_s = alike && state.leads() ? bound_of(plan, state.job(), {plan.key.block_bytes}) : 0;
    const auto sends = listed(sends_of(plan, alike));
    const trace::ServedPlan served{.function = select::name_of(plan.key.function),
                                   .algorithm = plan.route.algorithm.c_str(),
                                   .communicator = trace::handle_word(call.work.comm),
                                   .root = plan::is_rooted(plan.collective()) ? plan.key.root : -1,
                                   .block_bytes = alike ? plan.key.block_bytes : -1,
                                   .bound_ns = bound_s > 0 ? std::lround(bound_s * 1e9) : -1,
                                   .sends = sends.data(),
                                   .send_count = sends.size()};
    return palmette_record_add_plan(&served);
}

}  // namespace

bool RecordedCalls::possible() { return palmette_record_add_plan != nullptr && palmette_record_left_to_mpi != nullptr; }

bool RecordedCalls::are_recorded() { return palmette_record_is_on != nullptr && palmette_record_is_on() != 0; }

void RecordedCalls::synchronize(MPI_Comm comm) { palmette_record_synchronize(&comm); }

void RecordedCalls::synchronize_again() {
    if (are_recorded()) palmette_record_synchronize_again();
}

void RecordedCalls::call_begins(const CallEvent& call) {
    if (!call.plan->tally.recorded) call.plan->tally.recorded = add_plan(call);
    palmette_record_serve_by(*call.plan->tally.recorded);
}

void RecordedCalls::call_left(const CallEvent&) { palmette_record_left_to_mpi(); }

void RecordedCalls::call_ended(const CallEvent& call) {
    const CachedPlan& plan = *call.plan;
    if (calls_are_alike(plan) || plan.tally.recorded.value_or(0) == 0 || call.code != MPI_SUCCESS) return;
    Sends sends;
    add_sends(sends, call.work.bound(), 1);
    const auto list = listed(sends);
    palmette_record_add_sends(*plan.tally.recorded, list.data(), list.size());
}

}  // namespace palmette::runtime
