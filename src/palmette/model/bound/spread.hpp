// Lower bound on broadcast latency in the postal (LogP) model with gaps, on groups of nodes of ranks.
#pragma once

#include <cstdint>

namespace palmette::model {

/// A message between two members: its sender is busy for gap_s, and it arrives latency_s after its start.
struct PostalCosts {
    double gap_s = 0, latency_s = 0;
};

/// Shape of a broadcast: sizes of nodes and groups, as seen from the root; the largest of each kind.
struct SpreadShape {
    std::int32_t all_ranks = 1, all_nodes = 1;
    std::int32_t groups = 1;         ///< the root's included
    std::int32_t root_ranks = 1;     ///< ranks on the root's node
    std::int32_t root_nodes = 1;     ///< nodes in the root's group
    std::int32_t sibling_ranks = 1;  ///< ranks on another node of the root's group
    std::int32_t nodes = 1;          ///< nodes in another group
    std::int32_t ranks = 1;          ///< ranks on a node of another group
};

/// Costs of messages by the level that they cross.
struct SpreadCosts {
    PostalCosts inside, between_nodes, between_groups;
};

/// Lower bound on broadcast latency: the time until all ranks are informed, in seconds, when every informed rank may
/// send to others, one after the other. By time reversal, with the receivers' gaps, it also bounds the latency of a
/// gather or reduce to the root.
///
/// With one kind of messages it is the smallest t with N(t) >= members, N(t) = N(t - gap) + N(t - latency) (Bar-Noy,
/// Kipnis, "Designing broadcasting algorithms in the postal model for message-passing systems", Mathematical Systems
/// Theory 1994; Karp, Sahay, Santos, Schauser, SPAA 1993). With three kinds the same recursion is solved by dynamic
/// programming: the number of ranks that an informed rank can inform in the remaining time, when it is responsible for
/// so many ranks of its node and so many nodes of its group. Intra-node messages are bounded by the node's ranks,
/// entered nodes by the group's. Entering a node or group again isn't excluded: it counts as entering a new one, which
/// informs at least as many. So this is an upper bound on the nodes, ranks, or weighted sums of both that any schedule
/// informs in that time. Times are rounded down to steps of a 20th of the smallest cost (a 512th of the largest latency
/// where that is more).
///
/// 0 where no bound follows: inter-node gaps or latencies of 0. Time: steps times the square of (ranks per node times
/// nodes per group), which must be at most `most_spread_states`.
double least_spread_s(const SpreadShape& shape, const SpreadCosts& costs);

/// Maximum of ranks per node times nodes per group for `least_spread_s`.
constexpr std::int64_t most_spread_states = 600;

}  // namespace palmette::model
