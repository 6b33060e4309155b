#include "palmette/select/by_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "palmette/base/never_destroyed.hpp"
#include "palmette/base/text.hpp"
#include "palmette/model/estimate/estimate.hpp"
#include "palmette/model/play/predict.hpp"

namespace palmette::select {
using collectives::Spec;
using plan::Collective;

const std::vector<Spec>& candidates(Collective collective) {
    static const base::NeverDestroyed all([] {
        std::array<std::vector<Spec>, plan::collective_count + 1> out;  // `composed` has none
        // A node's own memory first: of equal times the first one wins.
        for (const bool alone : {true, false})
            for (const collectives::Algorithm& row : collectives::algorithms())
                if ((row.node_memory == collectives::NodeMemory::always) == alone)
                    for (const std::string_view text : base::split(row.candidates, ' '))
                        out[static_cast<std::size_t>(row.collective)].push_back(Spec::parse(text));
        return out;
    }());
    return (*all)[static_cast<std::size_t>(collective)];
}

namespace {

/// Latencies up to this value count as a low-latency network.
constexpr double fast_s = 20e-6;

/// Formulas assume that the segments of a pipeline arrive one after the other. Where a rank's concurrent messages share
/// a link fairly, they all complete together instead, and each hop takes the time of the whole vector (as in SimGrid;
/// docs/decisions/0005). So pipelined algorithms are excluded on low-latency networks.
bool pipelined(Collective collective, const Spec& spec) {
    const auto& row = collectives::algorithm_named(collective, spec.name);
    return row.pipelined && row.pipelined(spec);
}

bool may_be_pipelined(const topology::Job& job, const topology::Costs& costs) {
    // An unknown latency is assumed by the capacity of the links.
    return job.nodes().groups.count() == 1 || costs.levels.front().latency_s.value > fast_s;
}

bool serves(const topology::Job& job, const plan::Request& request, const Spec& spec) {
    const collectives::Algorithm& row = collectives::algorithm_named(request.collective, spec.name);
    // Without shared memory it would send messages instead, which another candidate does by its name.
    if (!request.shared_memory && collectives::uses_node_memory(row, spec)) return false;
    // More leaders than ranks would be the same plan again.
    const std::string_view leaders = spec.find("leaders").value_or("1");
    if (leaders != "all" && spec.integer("leaders", 1) > std::max(job.nodes().groups.largest(), 1) &&
        !spec.find("level"))
        return false;
    return !row.refuse(job, request, spec);
}

}  // namespace

std::vector<Estimate> rank_by_model(const topology::Job& job, const plan::Request& request,
                                    const std::vector<Spec>& candidates) {
    const topology::Costs costs = topology::Costs::of(job);
    const bool pipelines = may_be_pipelined(job, costs);
    const model::Estimator estimate(job, costs);
    std::vector<Estimate> out;
    for (const Spec& spec : candidates)
        if ((pipelines || !pipelined(request.collective, spec)) && serves(job, request, spec))
            if (const auto seconds = estimate(request, spec)) out.push_back({spec, *seconds});
    std::stable_sort(out.begin(), out.end(),
                     [](const Estimate& a, const Estimate& b) { return a.seconds < b.seconds; });
    return out;
}

std::vector<double> play_in_turn(const topology::Job& job, const plan::Request& request,
                                 const std::vector<Spec>& candidates) {
    const topology::Costs costs = topology::Costs::of(job);
    std::vector<double> out;
    model::PlayLimits limits;
    for (const Spec& spec : candidates) {
        const auto seconds = model::predict_within(limits, job, request, spec, costs);
        out.push_back(seconds.value_or(std::numeric_limits<double>::infinity()));
        limits.seconds = std::min(limits.seconds, out.back());
    }
    return out;
}

namespace {

/// Candidates whose estimate exceeds the best one's by more than this factor aren't simulated.
constexpr double most_underrated = 4;

/// `estimates` in the order of their times. `others` have no formula for such a job.
std::optional<Estimate> best_played(const topology::Job& job, const plan::Request& request,
                                    const std::vector<Estimate>& estimates, const std::vector<Spec>& others,
                                    const Plays& plays) {
    std::vector<Spec> specs;
    for (const Estimate& one : estimates)
        if (one.seconds <= most_underrated * estimates.front().seconds) specs.push_back(one.spec);
    specs.insert(specs.end(), others.begin(), others.end());
    if (specs.size() < 2) return std::nullopt;
    const std::vector<double> seconds = plays(job, request, specs);
    const auto best = std::min_element(seconds.begin(), seconds.end());
    if (!std::isfinite(seconds.front())) return std::nullopt;
    return Estimate{specs[static_cast<std::size_t>(best - seconds.begin())], *best, true};
}

}  // namespace

std::optional<Estimate> best_by_model(const topology::Job& job, const plan::Request& request,
                                      const std::vector<std::string>* lost, const Plays* plays) {
    if (request.block_bytes < 0 && request.collective != Collective::barrier) return std::nullopt;
    // Called inside a collective: copies only the chosen candidate, and checks preconditions of the fastest ones only.
    const std::vector<Spec>& specs = candidates(request.collective);
    const topology::Costs costs = topology::Costs::of(job);
    const bool pipelines = may_be_pipelined(job, costs);
    const model::Estimator estimate(job, costs);
    const auto may_be_chosen = [&](const Spec& spec) {
        return (pipelines || !pipelined(request.collective, spec)) &&
               !(lost && std::ranges::find(*lost, spec.text()) != lost->end());
    };
    // On one node formulas are enough.
    if (plays && job.nodes().groups.count() > 1) {
        std::vector<Estimate> estimates;
        std::vector<Spec> others;
        for (const Spec& spec : specs) {
            if (!may_be_chosen(spec) || !serves(job, request, spec)) continue;
            if (const auto seconds = estimate(request, spec))
                estimates.push_back({spec, *seconds});
            else
                others.push_back(spec);
        }
        std::ranges::stable_sort(estimates, {}, &Estimate::seconds);
        if (!estimates.empty())
            if (auto best = best_played(job, request, estimates, others, *plays)) return best;
    }
    std::vector<std::optional<double>> seconds;
    seconds.reserve(specs.size());
    for (const Spec& spec : specs) seconds.push_back(may_be_chosen(spec) ? estimate(request, spec) : std::nullopt);
    while (true) {
        std::optional<std::size_t> best;
        for (std::size_t i = 0; i < specs.size(); ++i)
            if (seconds[i] && (!best || *seconds[i] < *seconds[*best])) best = i;
        if (!best) return std::nullopt;
        if (serves(job, request, specs[*best])) return Estimate{specs[*best], *seconds[*best]};
        seconds[*best].reset();
    }
}

}  // namespace palmette::select
