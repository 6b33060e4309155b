// Communicator: candidates that are compared with the MPI's own collective, one after the other.
#include <algorithm>
#include <cstdio>
#include <limits>

#include "palmette/base/units.hpp"
#include "palmette/model/play/predict.hpp"
#include "palmette/runtime/data/size_class.hpp"
#include "palmette/runtime/report/reporting.hpp"
#include "palmette/runtime/start/probe.hpp"
#include "palmette/runtime/state/communicator.hpp"
#include "palmette/runtime/state/process.hpp"

namespace palmette::runtime {
namespace {

/// Candidates of the model that are compared with the MPI's own, one after the other, before it keeps a kind of calls.
constexpr std::size_t most_candidates = 3;

void print(const ProbedCosts& costs, const topology::Job& job) {
    for (std::size_t l = 0; l < costs.size(); ++l)
        if (costs[l].known())
            std::fprintf(stderr, "palmette: measured between %ss: latency %s, overhead %s, one stream %s\n",
                         l < job.levels().size() ? job.levels()[l].name.c_str() : "neighbour",
                         base::format_duration(costs[l].latency_s).c_str(),
                         base::format_duration(costs[l].overhead_s).c_str(),
                         costs[l].stream_bytes_per_s > 0 ? base::format_rate(costs[l].stream_bytes_per_s).c_str()
                                                         : "as fast as short ones");
}

}  // namespace

CallKind kind_of(const PlanKey& key) { return {key.function, size_class(key.block_bytes), key.ordered, key.exact}; }

Comparison& Communicator::comparison_for(const CachedPlan& plan, const Settings& settings) {
    const CallKind kind = kind_of(plan.key);
    for (const ComparedKind& known : comparisons_)
        if (known.kind == kind && known.algorithm == plan.route.algorithm) return *known.comparison;
    const Comparison::Terms terms{.share = settings.compare,
                                  .on_trial = select::is_on_trial(plan.route.basis),
                                  .once = !plan.key.exact,
                                  .late = !verdicts_->lost(kind).empty(),
                                  .won = verdicts_->has_won(kind, plan.route.candidate)};
    comparisons_.push_back({kind, plan.route.algorithm, std::make_unique<Comparison>(shadow_comm_, terms)});
    return *comparisons_.back().comparison;
}

void Communicator::probe() {
    may_probe_ = false;
    const auto costs = probe_costs(shadow_comm_, job_, rank_);
    if (!costs) return;
    if (rank_ == 0 && Process::instance().settings().verbose > 0) print(*costs, job_);
    const topology::Job measured_on = job_;
    apply_costs(*costs, measured_on, job_);
    Process::instance().keep_costs(*costs);
}

std::vector<double> Communicator::play(const CallKind& kind, const topology::Job& job, const plan::Request& request,
                                       const std::vector<select::Spec>& candidates) {
    const auto known = [&](const select::Spec& spec) {
        const std::string text = spec.text();
        return std::ranges::find_if(played_, [&](const Played& one) {
            return one.kind == kind && one.shared_memory == request.shared_memory && one.algorithm == text;
        });
    };
    const auto is_known = [&](const select::Spec& spec) { return known(spec) != played_.end(); };
    if (!std::ranges::all_of(candidates, is_known)) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        std::vector<double> seconds(candidates.size(), infinity);
        const topology::Costs costs = topology::Costs::of(job);
        for (std::size_t i = static_cast<std::size_t>(rank_); i < candidates.size();
             i += static_cast<std::size_t>(job.size()))
            seconds[i] = model::predict_within({}, job, request, candidates[i], costs).value_or(infinity);
        if (PMPI_Allreduce(MPI_IN_PLACE, seconds.data(), static_cast<int>(seconds.size()), MPI_DOUBLE, MPI_MIN,
                           shadow_comm_) != MPI_SUCCESS)
            seconds.assign(candidates.size(), infinity);
        for (std::size_t i = 0; i < candidates.size(); ++i)
            if (!is_known(candidates[i]))
                played_.push_back({kind, request.shared_memory, candidates[i].text(), seconds[i]});
    }
    std::vector<double> out;
    for (const select::Spec& spec : candidates) out.push_back(known(spec)->seconds);
    return out;
}

void Communicator::keep_verdict(const CachedPlan& plan) {
    const select::Verdict verdict = plan.tally.comparison->verdict();
    if (verdict == select::Verdict::open || verdict == plan.tally.comparison->verdict_before()) return;
    if (shared_verdicts_)
        shared_verdicts_->add(kind_of(plan.key), plan.route.candidate, !plan.tally.comparison->lost());
}

void Communicator::replace_lost(CachedPlan& plan, const Settings& settings) {
    const std::string why = why_lost(plan);
    const CallKind kind = kind_of(plan.key);
    verdicts_->add(kind, plan.route.candidate, false);
    if (!select::is_neighbourhood(plan.key.function) && verdicts_->lost(kind).size() < most_candidates) {
        CachedPlan next;
        next.key = plan.key;
        fill(next, settings);
        if (!next.refusal) {
            next.users = plan.users;
            plan = std::move(next);
            return;
        }
    }
    plan.refusal = Refusal::slower;
    plan.route.reason = why;
    leave_kind(plan);
}

void Communicator::leave_kind(CachedPlan& plan) {
    const CallKind kind = kind_of(plan.key);
    if (kind.ordered || kind.size_class < 1 || select::is_neighbourhood(kind.function)) return;
    plan.tally.refused = &Process::instance().report().refused_row(kind.function, *plan.refusal, plan.route.reason);
    const std::int64_t from = kind.size_class == 1 ? 1 : largest_of(kind.size_class - 1) + 1;
    for (LeftToMpi& left : left_.sizes[static_cast<std::size_t>(kind.function)][1]) {
        if (left.has(from)) return;
        if (left.from <= left.to) continue;
        left = {from, largest_of(kind.size_class), plan.tally.refused};
        return;
    }
}

}  // namespace palmette::runtime
