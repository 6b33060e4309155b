// The postal model's bound for a job: which of its levels are told apart, and what messages cost there.
#pragma once

#include "palmette/base/ids.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::model {

/// For how long an end of a message is busy with it, by where the other end is.
struct Gaps {
    double inside_s = 0;   ///< on the same node
    double between_s = 0;  ///< on another one
};

/// A lower bound on the time after which every rank can have heard of the one at `root` by messages alone, each of
/// which keeps its sender busy for a gap; with the receivers' gaps, on how soon that one can have heard of all
/// (spread.hpp).
///
/// Three kinds of messages are told apart: inside a node, between the nodes of one group of the innermost level above
/// them, and between such groups. Each takes the smallest latency of the levels that it may cross. Where a group has
/// too many ranks and nodes, every node counts as a group of its own. 0 where a latency or gap isn't known, so that
/// nothing follows. Time: nodes, and `least_spread_s`.
double spread_s(const topology::Job& job, base::Position root, const Gaps& gaps);

}  // namespace palmette::model
