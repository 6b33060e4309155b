#include "palmette/runtime/report/reporting.hpp"

#include <cstdio>

#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"
#include "palmette/model/bound/bound.hpp"
#include "palmette/model/bound/own_messages.hpp"
#include "palmette/runtime/data/size_class.hpp"
#include "palmette/runtime/state/process.hpp"
#include "palmette/runtime/state/work.hpp"

namespace palmette::runtime {
namespace {

/// The sizes that are compared together with this one.
std::string phrase_of_sizes(std::int64_t block_bytes) {
    if (block_bytes < 0) return "unknown size";
    const int like = size_class(block_bytes);
    if (like < 2) return base::format_size(block_bytes);
    return base::cat(base::format_size(largest_of(like - 1) + 1), " to ", base::format_size(largest_of(like)));
}

/// The buffer with all blocks, where their lengths may differ: at the root, or at rank 0. Null at other ranks, and
/// where no rank knows all lengths.
const CallerBuffer* all_blocks(const Work& work, int rank) {
    const PlanKey& key = work.plan->key;
    switch (key.function) {
        case select::Function::gatherv:
            return rank == key.root ? &work.recv : nullptr;
        case select::Function::scatterv:
            return rank == key.root ? &work.send : nullptr;
        case select::Function::allgatherv:
            return rank == 0 ? &work.recv : nullptr;
        case select::Function::reduce_scatter:
            return rank == 0 ? &work.send : nullptr;
        default:
            return nullptr;
    }
}

/// Adds a call's lower bound to the report.
void add_bound(const CallEvent& call) {
    const Work& work = call.work;
    CachedPlan& plan = *call.plan;
    Communicator& state = *call.state;
    Report& report = Process::instance().report();
    if (select::sizes_alike(call.function)) {
        if (plan.tally.bound_s > 0) report.bounded(*plan.tally.served, plan.tally.bound_s);
        return;
    }
    if (const CallerBuffer* blocks = all_blocks(work, state.rank())) {
        std::vector<std::int64_t> lengths(static_cast<std::size_t>(state.size()));
        for (int r = 0; r < state.size(); ++r) lengths[static_cast<std::size_t>(r)] = blocks->bytes(r);
        if (lengths != plan.tally.bound_lengths) {
            plan.tally.bound_s = bound_of(plan, state.job(), lengths);
            plan.tally.bound_lengths = std::move(lengths);
        }
        if (plan.tally.bound_s > 0 || blocks->total() == 0) report.bounded(*plan.tally.served, plan.tally.bound_s);
        return;
    }
    const topology::Job* world = Process::instance().world();
    if (plan.collective() != plan::Collective::alltoall || !world) return;
    const auto messages = model::own_messages(
        state.job(), plan::Rank{state.rank()}, [&](std::int32_t other) { return work.send.bytes(other); },
        [&](std::int32_t other) { return work.recv.bytes(other); });
    report.bounded(*plan.tally.served, messages, state.job(), *world, plan::Rank{Process::instance().world_rank()},
                   state.rank() == 0);
}

}  // namespace

double bound_of(const CachedPlan& plan, const topology::Job& job, const std::vector<std::int64_t>& lengths) {
    const PlanKey& key = plan.key;
    if (select::is_neighbourhood(key.function)) return 0;
    const plan::Request request{plan.collective(), plan::Rank{key.root}, key.block_bytes, key.element_bytes,
                                key.ordered};
    if (plan.way->is_in_network()) return model::bound_terms(job, request, lengths).limit_in_network.seconds;
    return model::bound(job, request, lengths).seconds;
}

std::string why_lost(const CachedPlan& plan) {
    const Comparison& comparison = *plan.tally.comparison;
    return base::cat(plan.route.algorithm, " took ", base::format_duration(comparison.ours_s()), ", the MPI's ",
                     base::format_duration(comparison.mpi_s()), " (medians of ", comparison.pairs(), " pairs)");
}

void Reporting::plan_made(Communicator& state, CachedPlan& plan) {
    if (state.leads() && select::sizes_alike(plan.key.function))
        plan.tally.bound_s = bound_of(plan, state.job(), {plan.key.block_bytes});
}

void Reporting::call_ended(const CallEvent& call) {
    Process::instance().report().timed(*call.plan->tally.served, call.end_s - call.begin_s);
    if (call.code == MPI_SUCCESS) add_bound(call);
}

void Reporting::compared(const Communicator& state, const CachedPlan& plan) {
    if (!state.leads()) return;
    Report& report = Process::instance().report();
    const Comparison& comparison = *plan.tally.comparison;
    Report::ComparisonRow& row = report.compared_row(plan.key.function, plan.key.block_bytes, plan.route.algorithm);
    row.cost_s += comparison.last_cost_s();
    if (!comparison.comparable()) return;
    ++row.pairs;
    row.ours_s = comparison.ours_s();
    row.mpi_s = comparison.mpi_s();
    if (comparison.pairs() > 1) --row.of(comparison.verdict_before());
    ++row.of(comparison.verdict());
}

void VerboseLog::call_ended(const CallEvent& call) {
    const CachedPlan& plan = *call.plan;
    if (verbose_ > 1 && call.state->rank() == 0)
        std::fprintf(stderr, "palmette: %s of %s on %d ranks by %s (%s)\n", select::name_of(call.function),
                     plan.key.block_bytes < 0 ? "unknown size" : base::format_size(plan.key.block_bytes).c_str(),
                     call.state->size(), plan.route.algorithm.c_str(), plan.route.reason.c_str());
}

void VerboseLog::compared(const Communicator& state, const CachedPlan& plan) {
    const Comparison& comparison = *plan.tally.comparison;
    if (!state.leads() || !comparison.comparable() || !comparison.lost()) return;
    std::fprintf(stderr, "palmette: %s of %s on %d ranks lost to the MPI's own: %s\n",
                 select::name_of(plan.key.function), phrase_of_sizes(plan.key.block_bytes).c_str(), state.size(),
                 why_lost(plan).c_str());
}

}  // namespace palmette::runtime
