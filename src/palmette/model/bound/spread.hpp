// Lower bound on broadcast latency in the postal (LogP) model with gaps, on groups of nodes of ranks.
#pragma once

#include <cstdint>

namespace palmette::model {

/// A message between two members: its sender is busy for gap_s, and its receiver has it latency_s after it was begun.
struct PostalCosts {
    double gap_s = 0, latency_s = 0;
};

/// Where a word starts, and where it has to go. Sizes are those of the largest.
struct SpreadShape {
    std::int32_t all_ranks = 1, all_nodes = 1;
    std::int32_t groups = 1;         ///< the root's included
    std::int32_t root_ranks = 1;     ///< of the root's node
    std::int32_t root_nodes = 1;     ///< of the root's group
    std::int32_t sibling_ranks = 1;  ///< of another node of the root's group
    std::int32_t nodes = 1;          ///< of another group
    std::int32_t ranks = 1;          ///< of one of its nodes
};

/// What messages cost by what they cross.
struct SpreadCosts {
    PostalCosts inside, between_nodes, between_groups;
};

/// A lower bound on the time after which every rank can have heard of the root, in seconds. Every rank that has heard
/// may tell others, one after the other. Turned round in time, with the receivers' gaps, it bounds how soon the root
/// can have heard of everybody.
///
/// With one kind of messages it is the least t with N(t) >= members, N(t) = N(t - gap) + N(t - latency) (Bar-Noy,
/// Kipnis, "Designing broadcasting algorithms in the postal model for message-passing systems", Mathematical Systems
/// Theory 1994; Karp, Sahay, Santos, Schauser, SPAA 1993). With three kinds it is the same recursion over what a rank
/// can bring about in the time left, when it answers for so many ranks of its node and so many nodes of its group:
/// messages inside are bounded by the node's ranks, nodes entered by the group's. Nothing hinders a node from being
/// entered again, or a group: it counts as entering a new one, which brings about as much at least. So no schedule
/// reaches more nodes, ranks, or weighted sums of both in that time. Times are rounded down to steps of a 20th of the
/// smallest cost (a 512th of the largest latency where that is more).
///
/// 0 where nothing follows: gaps or latencies between nodes of 0. Time: steps times the squares of ranks a node times
/// nodes a group, which must be at most `most_spread_states`.
double least_spread_s(const SpreadShape& shape, const SpreadCosts& costs);

/// Ranks of a node times nodes of a group that `least_spread_s` takes.
constexpr std::int64_t most_spread_states = 600;

}  // namespace palmette::model
