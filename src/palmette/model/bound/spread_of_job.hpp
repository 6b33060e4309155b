// Lower bound on broadcast latency for a job (postal model): maps its levels to three kinds of messages, and their
// costs.
#pragma once

#include "palmette/base/ids.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::model {

/// Gap (CPU time per message) of one end of a message, by the location of the other end.
struct Gaps {
    double inside_s = 0;   ///< on the same node
    double between_s = 0;  ///< on another node
};

/// Lower bound on the broadcast latency from `root` by messages alone, each of which occupies its sender for a gap;
/// with the receivers' gaps, on the latency of a gather or reduce to it (spread.hpp).
///
/// Three kinds of messages: intra-node, between the nodes of one group of the innermost level above them, and between
/// such groups. Each has the smallest latency of the levels that it may cross. Where a group has too many ranks and
/// nodes, every node counts as a group of its own. 0 where a latency or gap is unknown, so that no bound follows. Time:
/// nodes, and `least_spread_s`.
double spread_s(const topology::Job& job, base::Position root, const Gaps& gaps);

}  // namespace palmette::model
