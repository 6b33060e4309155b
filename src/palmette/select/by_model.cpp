#include "palmette/select/by_model.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "palmette/model/estimate.hpp"

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
                    "by_topology",
                    "k_nomial"};
        case Collective::allgather:
            return {"shared",
                    "ring:segment=32K",
                    "leaders:between=recursive_doubling,inside=binomial",
                    "leaders:between=bruck,inside=binomial",
                    "recursive_doubling",
                    "bruck",
                    "linear"};
        case Collective::bcast:
        case Collective::reduce:
            return {"shared",
                    "by_topology:node=linear,leaf=linear,top=linear",
                    "by_topology:node=linear,leaf=k_nomial.4,top=k_nomial.4",
                    "by_topology:node=linear,leaf=chain,top=chain,segment=4K",
                    "by_topology:node=linear,leaf=chain,top=chain,segment=8K",
                    "by_topology:node=linear,leaf=chain,top=chain,segment=32K",
                    "k_nomial"};
        case Collective::allreduce:
            return {"shared",
                    "leaders:between=recursive_doubling,inside=linear",
                    "leaders:between=rabenseifner,inside=linear",
                    "ring:segment=32K",
                    "recursive_doubling",
                    "rabenseifner"};
        case Collective::reduce_scatter:
            return {"shared", "leaders:inside=linear", "ring:segment=32K", "recursive_halving"};
        case Collective::alltoall:
            return {"shared", "node_aware:inside=linear", "linear", "bruck"};
        case Collective::barrier:
            return {"shared", "leaders", "dissemination"};
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
    static const auto all = [] {
        std::array<std::vector<Spec>, plan::collective_count> out;
        for (std::size_t c = 0; c < out.size(); ++c)
            for (const std::string_view text : texts_of(static_cast<Collective>(c)))
                out[c].push_back(Spec::parse(text));
        return out;
    }();
    return all[static_cast<std::size_t>(collective)];
}

namespace {

/// Tells `take` each candidate that serves and has a formula, and its seconds.
template <class Take>
void estimate_each(const topology::Job& job, const plan::Request& request, const std::vector<Spec>& candidates,
                   Take take) {
    const model::Costs costs = model::Costs::of(job);
    for (const Spec& spec : candidates) {
        if (collectives::algorithm_named(request.collective, spec.name).refuse(job, request, spec)) continue;
        if (const auto seconds = model::estimate(job, costs, request, spec)) take(spec, *seconds);
    }
}

}  // namespace

std::vector<Estimated> rank_by_model(const topology::Job& job, const plan::Request& request,
                                     const std::vector<Spec>& candidates) {
    std::vector<Estimated> out;
    estimate_each(job, request, candidates, [&](const Spec& spec, double seconds) { out.push_back({spec, seconds}); });
    std::stable_sort(out.begin(), out.end(),
                     [](const Estimated& a, const Estimated& b) { return a.seconds < b.seconds; });
    return out;
}

std::optional<Estimated> best_by_model(const topology::Job& job, const plan::Request& request) {
    if (request.block_bytes < 0 && request.collective != Collective::barrier) return std::nullopt;
    // This one is asked in a run, and copies nothing that it doesn't choose.
    const Spec* best = nullptr;
    double least_s = 0;
    estimate_each(job, request, candidates(request.collective), [&](const Spec& spec, double seconds) {
        if (best && seconds >= least_s) return;
        best = &spec;
        least_s = seconds;
    });
    return best ? std::optional(Estimated{*best, least_s}) : std::nullopt;
}

}  // namespace palmette::select
