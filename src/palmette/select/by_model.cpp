#include "palmette/select/by_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "palmette/base/never_destroyed.hpp"
#include "palmette/model/estimate/estimate.hpp"
#include "palmette/model/play/predict.hpp"

namespace palmette::select {
namespace {

using collectives::Spec;
using plan::Collective;

std::vector<std::string_view> texts_of(Collective collective) {
    switch (collective) {
        case Collective::gather:
        case Collective::scatter:
            return {"shared",
                    "linear",
                    "by_topology:node=linear,top=linear",
                    "by_topology:node=linear,leaf=linear,top=linear",
                    "by_topology:node=linear,top=linear,relays=all",
                    "by_topology:node=k_nomial.5,top=k_nomial.5",
                    "by_topology:node=postal.5,top=postal.5",
                    "by_topology:node=postal.4,top=postal.12",
                    "k_nomial",
                    "k_nomial:radix=8",
                    "k_nomial:radix=4,order=rank",
                    "k_nomial:radix=8,order=rank",
                    "linear:order=rank"};
        case Collective::allgather:
            return {"shared",
                    "ring:segment=32K",
                    "ring",
                    "ring:nested=no",
                    "leaders:between=recursive_doubling,inside=binomial",
                    "leaders:between=bruck,inside=binomial",
                    "leaders:leaders=4,between=bruck,inside=binomial",
                    "leaders:leaders=4,between=ring,inside=linear",
                    "locality_bruck",
                    "locality_bruck:inside=shared",
                    "recursive_doubling",
                    "bruck",
                    "bruck:radix=4",
                    "linear"};
        case Collective::bcast:
            return {"shared",
                    "by_topology:node=linear,leaf=linear,top=linear",
                    "by_topology:node=postal.5,top=postal.6",
                    "by_topology:node=k_nomial.4,top=k_nomial.4",
                    "by_topology:node=postal.5,top=linear,relays=all",
                    "node_pieces",
                    "node_pieces:inside=halving,relays=1,segment=8K",
                    "scatter_allgather:allgather=bruck",
                    "circulant",
                    "circulant:segment=24K,window=1",
                    "node_pieces:relays=1,segment=32K",
                    "k_nomial:window=1",
                    "by_topology:node=binomial,leaf=binomial,top=binomial,window=1",
                    "by_topology:node=linear,leaf=k_nomial.4,top=k_nomial.4",
                    "by_topology:node=linear,leaf=chain,top=chain,segment=4K",
                    "by_topology:node=linear,leaf=chain,top=chain,segment=8K",
                    "by_topology:node=linear,leaf=chain,top=chain,segment=32K",
                    "by_topology:node=shared,top=linear",
                    "by_topology:node=shared,top=k_nomial.4",
                    "by_topology:node=shared,top=binomial,window=1",
                    "by_topology:node=shared,leaf=chain,top=chain,segment=32K",
                    "by_topology:node=shared,top=linear,segment=32K",
                    "k_nomial",
                    "k_nomial:radix=3",
                    "k_nomial:radix=4,order=rank"};
        case Collective::reduce:
            return {"shared",
                    "by_topology:node=linear,leaf=linear,top=linear",
                    "by_topology:node=postal.4,top=postal.4",
                    "by_topology:node=k_nomial.4,top=k_nomial.4",
                    "by_topology:node=k_nomial.3,top=postal.12,relays=4",
                    "by_topology:node=postal.5,top=linear,relays=all",
                    "node_pieces",
                    "node_pieces:inside=halving,segment=8K",
                    "reduce_scatter_gather",
                    "by_topology:node=linear,leaf=k_nomial.4,top=k_nomial.4",
                    "by_topology:node=linear,leaf=chain,top=chain,segment=4K",
                    "by_topology:node=linear,leaf=chain,top=chain,segment=8K",
                    "by_topology:node=linear,leaf=chain,top=chain,segment=32K",
                    "by_topology:node=shared,top=linear",
                    "by_topology:node=shared,top=k_nomial.4",
                    "by_topology:node=shared,leaf=chain,top=chain,segment=32K",
                    "k_nomial",
                    "k_nomial:order=rank",
                    "k_nomial:radix=3",
                    "k_nomial:radix=4,order=rank",
                    "reduce_scatter_gather:order=rank"};
        case Collective::allreduce:
            return {"shared",
                    "leaders:between=recursive_doubling,inside=linear",
                    "leaders:between=rabenseifner,inside=linear",
                    "leaders:between=recursive_doubling,inside=shared",
                    "leaders:between=rabenseifner,inside=shared",
                    "leaders:leaders=all,between=recursive_doubling,inside=shared",
                    "leaders:leaders=all,between=rabenseifner,inside=shared",
                    "leaders:leaders=all,between=recursive_doubling,inside=linear",
                    "leaders:leaders=all,between=rabenseifner,inside=linear",
                    "leaders:leaders=all,between=all,inside=linear",
                    "node_aware",
                    "node_pieces",
                    "node_pieces:inside=halving.4",
                    "node_pieces:inside=halving,complete=tree,segment=8K,window=3",
                    "recursive_multiplying",
                    "direct",
                    "ring:segment=32K",
                    "ring",
                    "recursive_doubling",
                    "rabenseifner",
                    "recursive_doubling:order=rank"};
        case Collective::reduce_scatter:
            return {"shared",
                    "leaders:leaders=all,inside=shared",
                    "leaders:inside=linear",
                    "ring:segment=32K",
                    "ring:nested=no",
                    "recursive_halving"};
        case Collective::alltoall:
            return {"shared",
                    "node_aware:inside=linear",
                    "node_aware:inside=shared",
                    "leaders:leaders=8",
                    "linear",
                    "bruck",
                    "bruck:radix=4",
                    "bruck:radix=8"};
        case Collective::barrier:
            return {"shared", "leaders", "dissemination:inside=shared", "dissemination"};
        case Collective::scan:
        case Collective::exscan:
            return {"shared", "recursive_doubling", "linear:segment=2K", "linear:segment=8K", "all"};
        case Collective::composed:
            break;
    }
    return {};
}

}  // namespace

const std::vector<Spec>& candidates(Collective collective) {
    static const base::NeverDestroyed all([] {
        std::array<std::vector<Spec>, plan::collective_count + 1> out;  // `composed` has none
        for (std::size_t c = 0; c < out.size(); ++c)
            for (const std::string_view text : texts_of(static_cast<Collective>(c)))
                out[c].push_back(Spec::parse(text));
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
bool pipelined(const Spec& spec) {
    const auto top = spec.find("top");
    return (top && *top == "chain") || (spec.name == "ring" && spec.find("segment")) ||
           (spec.name == "circulant" && !spec.find("window"));
}

bool may_be_pipelined(const topology::Job& job, const model::Costs& costs) {
    // An unknown latency is assumed by the capacity of the links.
    return job.nodes().groups.count() == 1 || costs.levels.front().latency_s.value > fast_s;
}

bool serves(const topology::Job& job, const plan::Request& request, const Spec& spec) {
    const collectives::Algorithm& row = collectives::algorithm_named(request.collective, spec.name);
    // Without shared memory it would send messages instead, which another candidate does by its name.
    if (!request.shared_memory && collectives::uses_node_memory(row, spec)) return false;
    return !row.refuse(job, request, spec);
}

}  // namespace

std::vector<Estimated> rank_by_model(const topology::Job& job, const plan::Request& request,
                                     const std::vector<Spec>& candidates) {
    const model::Costs costs = model::Costs::of(job);
    const bool pipelines = may_be_pipelined(job, costs);
    const model::Estimator estimate(job, costs);
    std::vector<Estimated> out;
    for (const Spec& spec : candidates)
        if ((pipelines || !pipelined(spec)) && serves(job, request, spec))
            if (const auto seconds = estimate(request, spec)) out.push_back({spec, *seconds});
    std::stable_sort(out.begin(), out.end(),
                     [](const Estimated& a, const Estimated& b) { return a.seconds < b.seconds; });
    return out;
}

std::vector<double> play_in_turn(const topology::Job& job, const plan::Request& request,
                                 const std::vector<Spec>& candidates) {
    const model::Costs costs = model::Costs::of(job);
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
std::optional<Estimated> best_played(const topology::Job& job, const plan::Request& request,
                                     const std::vector<Estimated>& estimates, const std::vector<Spec>& others,
                                     const Plays& plays) {
    std::vector<Spec> specs;
    for (const Estimated& one : estimates)
        if (one.seconds <= most_underrated * estimates.front().seconds) specs.push_back(one.spec);
    specs.insert(specs.end(), others.begin(), others.end());
    if (specs.size() < 2) return std::nullopt;
    const std::vector<double> seconds = plays(job, request, specs);
    const auto best = std::min_element(seconds.begin(), seconds.end());
    if (!std::isfinite(seconds.front())) return std::nullopt;
    return Estimated{specs[static_cast<std::size_t>(best - seconds.begin())], *best, true};
}

}  // namespace

std::optional<Estimated> best_by_model(const topology::Job& job, const plan::Request& request,
                                       const std::vector<std::string>* lost, const Plays* plays) {
    if (request.block_bytes < 0 && request.collective != Collective::barrier) return std::nullopt;
    // Called inside a collective: copies only the chosen candidate, and checks preconditions of the fastest ones only.
    const std::vector<Spec>& specs = candidates(request.collective);
    const model::Costs costs = model::Costs::of(job);
    const bool pipelines = may_be_pipelined(job, costs);
    const model::Estimator estimate(job, costs);
    const auto may_be_chosen = [&](const Spec& spec) {
        return (pipelines || !pipelined(spec)) && !(lost && std::ranges::find(*lost, spec.text()) != lost->end());
    };
    // On one node formulas are enough.
    if (plays && job.nodes().groups.count() > 1) {
        std::vector<Estimated> estimates;
        std::vector<Spec> others;
        for (const Spec& spec : specs) {
            if (!may_be_chosen(spec) || !serves(job, request, spec)) continue;
            if (const auto seconds = estimate(request, spec))
                estimates.push_back({spec, *seconds});
            else
                others.push_back(spec);
        }
        std::ranges::stable_sort(estimates, {}, &Estimated::seconds);
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
        if (serves(job, request, specs[*best])) return Estimated{specs[*best], *seconds[*best]};
        seconds[*best].reset();
    }
}

}  // namespace palmette::select
