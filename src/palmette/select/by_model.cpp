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
        std::array<std::vector<Spec>, plan::collective_count + 1> out;  // `composed` has none
        for (std::size_t c = 0; c < out.size(); ++c)
            for (const std::string_view text : texts_of(static_cast<Collective>(c)))
                out[c].push_back(Spec::parse(text));
        return out;
    }();
    return all[static_cast<std::size_t>(collective)];
}

namespace {

bool serves(const topology::Job& job, const plan::Request& request, const Spec& spec) {
    return !collectives::algorithm_named(request.collective, spec.name).refuse(job, request, spec);
}

}  // namespace

std::vector<Estimated> rank_by_model(const topology::Job& job, const plan::Request& request,
                                     const std::vector<Spec>& candidates) {
    const model::Estimator estimate(job, model::Costs::of(job));
    std::vector<Estimated> out;
    for (const Spec& spec : candidates)
        if (serves(job, request, spec))
            if (const auto seconds = estimate(request, spec)) out.push_back({spec, *seconds});
    std::stable_sort(out.begin(), out.end(),
                     [](const Estimated& a, const Estimated& b) { return a.seconds < b.seconds; });
    return out;
}

std::optional<Estimated> best_by_model(const topology::Job& job, const plan::Request& request) {
    if (request.block_bytes < 0 && request.collective != Collective::barrier) return std::nullopt;
    // This one is asked in a run: it copies nothing that it doesn't choose, and asks only the fastest whether they serve.
    const std::vector<Spec>& specs = candidates(request.collective);
    const model::Estimator estimate(job, model::Costs::of(job));
    std::vector<std::optional<double>> seconds;
    seconds.reserve(specs.size());
    for (const Spec& spec : specs) seconds.push_back(estimate(request, spec));
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
