// How much of a vector goes through a job's aggregators, and how much goes by the hosts at the same time.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/collectives/registry.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::collectives {

/// The aggregators above all groups of the job, by index: those that can take contributions of all of them. Switches
/// that reduce come before daemons. Where the link of one is no limit, that one alone.
std::vector<std::int32_t> top_aggregators(const topology::Job& job);

/// Capacities of the links of these aggregators (of top_aggregators) together; 0: no limit.
double aggregate_capacity(const topology::Job& job, const std::vector<std::int32_t>& aggregators);

/// Whether switches reduce for the job: then one member of each group has the messages with them.
bool switches_reduce(const topology::Job& job);

/// The level whose groups send to aggregators, by an in_network spec: its key `level`, or the outermost; that of nodes
/// where switches reduce, which are a tree of their own.
std::size_t network_level(const topology::Job& job, const Spec& spec);

/// Whether a plan of this collective has messages with aggregators.
bool uses_aggregators(plan::Collective collective, const Spec& spec);

/// The plan in which hosts do what aggregators would do, with the same brackets.
Spec network_by_hosts(Spec spec);

/// The share of an allreduce's vector, 0 to 1, to send through `aggregators` (of top_aggregators) so that the slowest
/// edge takes least, while a nested ring over all ranks reduces the rest; all of it where switches reduce. Through an
/// aggregator each group of `level` reduces by a ring inside, sends every element once and receives the result. 1 where
/// no capacity is known.
///
/// A function of the job alone. Time: O(groups).
double network_share(const topology::Job& job, std::size_t level, const std::vector<std::int32_t>& aggregators);

/// Bytes of the first segments that an allreduce's aggregators have to receive from all members together before they
/// can send a result (in allreduce_in_network.cpp). The spec must serve the job.
std::int64_t in_network_first_segments(const topology::Job& job, const Request& request, const Spec& spec);

/// Whether an allreduce's plan through aggregators has one exchange with them for each group, short enough that its
/// members keep the result for each other.
bool in_network_keeps(const Request& request, const Spec& spec);

/// The rank of a group that exchanges with the aggregators, where in_network_keeps().
topology::Rank in_network_owner(const topology::Job& job, std::size_t level, std::int32_t group);

/// Numbers of blocks, at least 1 each, so that numbers[i] * units[i] of the sum is about shares[i].
std::vector<std::int64_t> blocks_for(const std::vector<double>& shares, const std::vector<std::int64_t>& units);

}  // namespace palmette::collectives
