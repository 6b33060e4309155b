#include "palmette/select/through_aggregators.hpp"

#include <algorithm>
#include <bit>

#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"
#include "palmette/collectives/exchanges/network_share.hpp"
#include "palmette/model/bound/bound.hpp"
#include "palmette/select/by_model.hpp"
#include "palmette/topology/job_costs.hpp"

namespace palmette::select {
namespace {

/// Share of the hosts' bound that aggregators must stay below: less would be lost in what neither bound contains.
constexpr double least_gain = 0.95;
/// Shorter vectors are a few messages either way, and an agreement costs as much as those of hosts.
constexpr std::int64_t least_bytes = 32768;

/// Assumed: what a switch takes to combine a chunk, and how long a chunk of its is at least.
constexpr double switch_s = 0.1e-6;
constexpr std::int64_t switch_chunk = 1024;
/// Assumed: what a daemon's thread takes for one frame of a member and one to it, by way of the kernel's TCP.
constexpr double daemon_frames_s = 8e-6;

/// A message up and one down for each bit of the number of ranks; a chunk up and one down.
double agreement_s(const Job& job) {
    const double hops = 2.0 * std::bit_width(static_cast<unsigned>(job.size() - 1)) + 2;
    return hops * topology::Costs::of(job).levels.front().latency_s.value;
}

/// Time until the first segments of all members are there; no aggregator has anything to send before.
double fill_s(const Job& job, std::int64_t first_segments) {
    const double capacity = collectives::aggregate_capacity(job, collectives::top_aggregators(job));
    return capacity > 0 ? static_cast<double>(first_segments) / capacity : 0;
}

/// Up and down a binomial tree in each group, then through the aggregator and back; nobody agrees on anything
/// (aggregate/kept).
double short_s(const Job& job, const plan::Request& request, const Spec& spec) {
    const topology::Costs costs = topology::Costs::of(job);
    const std::size_t level = collectives::network_level(job, spec);
    const topology::Partition& groups = job.levels()[level].groups;
    const topology::MessageCosts& between = costs.levels.front();
    const topology::MessageCosts& inside = costs.levels[std::min(level + 1, costs.levels.size() - 1)];
    const int rounds = std::bit_width(static_cast<unsigned>(groups.largest() - 1));
    double seconds = 2 * rounds * inside.latency_s.value + between.latency_s.value;
    if (collectives::switches_reduce(job)) {
        const auto chunks = static_cast<double>((request.block_bytes + switch_chunk - 1) / switch_chunk);
        return seconds + 2 * switch_s * static_cast<double>(level + 1) + (chunks - 1) * between.overhead_s.value;
    }
    // A daemon is a host of its own: a message to it and one from it. It handles one frame after the other.
    seconds += between.latency_s.value + groups.count() * daemon_frames_s;
    return seconds + 2 * fill_s(job, groups.count() * request.block_bytes);
}

}  // namespace

std::optional<Choice> through_aggregators(const Job& job, const plan::Request& request) {
    if (job.aggregators().empty() || request.collective != plan::Collective::allreduce || request.ordered)
        return std::nullopt;
    const Spec spec{"in_network", {}};
    const bool keeps = collectives::in_network_keeps(request, spec);
    if (!keeps && request.block_bytes < least_bytes) return std::nullopt;
    if (collectives::algorithm_named(request.collective, spec.name).refuse(job, request, spec)) return std::nullopt;
    if (keeps) {
        const double network_s = short_s(job, request, spec);
        const auto hosts = best_by_model(job, request);
        if (!hosts || network_s > least_gain * hosts->seconds) return std::nullopt;
        return Choice{spec, base::cat("aggregators: about ", base::format_duration(network_s), ", ", hosts->spec.text(),
                                      " of hosts about ", base::format_duration(hosts->seconds))};
    }
    const model::BoundTerms terms = model::bound_terms(job, request, {request.block_bytes});
    const double network_s = terms.limit_in_network.seconds + agreement_s(job) +
                             fill_s(job, collectives::in_network_first_segments(job, request, spec));
    const double hosts_s = terms.limit.seconds;
    if (hosts_s <= 0 || network_s > least_gain * hosts_s) return std::nullopt;
    return Choice{spec, base::cat("aggregators: at least ", base::format_duration(network_s), ", hosts at least ",
                                  base::format_duration(hosts_s))};
}

}  // namespace palmette::select
