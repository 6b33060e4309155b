#include "palmette/select/through_aggregators.hpp"

#include <bit>

#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"
#include "palmette/collectives/exchanges/network_share.hpp"
#include "palmette/model/bound/bound.hpp"
#include "palmette/topology/job_costs.hpp"

namespace palmette::select {
namespace {

/// Of the hosts' bound: less would be lost in what neither bound contains.
constexpr double least_gain = 0.95;
/// Shorter vectors are a few messages either way, and a daemon is one more process to wake up.
constexpr std::int64_t least_bytes = 32768;

/// A message up and one down for each bit of the number of ranks; a chunk up and one down.
double agreement_s(const Job& job) {
    const double hops = 2.0 * std::bit_width(static_cast<unsigned>(job.size() - 1)) + 2;
    return hops * topology::Costs::of(job).levels.front().latency_s.value;
}

/// Until the first segments of all members are there no aggregator has anything to send.
double fill_s(const Job& job, std::int64_t first_segments) {
    const double capacity = collectives::aggregate_capacity(job, collectives::top_aggregators(job));
    return capacity > 0 ? static_cast<double>(first_segments) / capacity : 0;
}

}  // namespace

std::optional<Choice> through_aggregators(const Job& job, const plan::Request& request) {
    if (job.aggregators().empty() || request.collective != plan::Collective::allreduce || request.ordered ||
        request.block_bytes < least_bytes)
        return std::nullopt;
    const Spec spec{"in_network", {}};
    if (collectives::algorithm_named(request.collective, spec.name).refuse(job, request, spec)) return std::nullopt;
    const model::BoundTerms terms = model::bound_terms(job, request, {request.block_bytes});
    const double network_s = terms.limit_in_network.seconds + agreement_s(job) +
                             fill_s(job, collectives::in_network_first_segments(job, request, spec));
    const double hosts_s = terms.limit.seconds;
    if (hosts_s <= 0 || network_s > least_gain * hosts_s) return std::nullopt;
    return Choice{spec, base::cat("aggregators: at least ", base::format_duration(network_s), ", hosts at least ",
                                  base::format_duration(hosts_s))};
}

}  // namespace palmette::select
