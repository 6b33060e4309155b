// How long a plan takes on a job, from what messages, edges and memory cost.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "palmette/collectives/registry.hpp"
#include "palmette/model/costs.hpp"
#include "palmette/plan/plan.hpp"

namespace palmette::model {

/// How messages share an edge: evenly between the pairs of ranks that send over it, as TCP connections and adapters do,
/// or one after the other in the order in which they come, as the closed formulas of the literature suppose.
enum class Sharing : std::uint8_t { evenly, in_order };

/// What the messages of one level add to the longest chain of dependences, which is the time of the plan.
struct LevelPart {
    std::string level;  ///< or "ranks side by side"
    double latency_s = 0;
    double transfer_s = 0;  ///< bytes on edges or, inside of a node, through shared memory
    double overhead_s = 0;  ///< of the ranks at both ends
    /// How much longer transfers of this level took than each would have alone; 1: nobody shared. Over all messages, by
    /// bytes.
    double contention = 1;
    std::int64_t messages = 0;
    std::int64_t bytes = 0;

    double seconds() const { return latency_s + transfer_s + overhead_s; }
};

struct Prediction {
    double seconds = 0;             ///< until the last rank is done, all having begun at once
    std::vector<LevelPart> levels;  ///< as in the job, then ranks that no level tells apart
    double copy_s = 0;              ///< copies, packing and reads of other ranks' memory on that chain
    double reduce_s = 0;
    std::vector<std::pair<std::string, double>> stages;  ///< what the stages of the plan add, in order of appearance
};

/// Plays the programs of all ranks. All parts of a prediction add up to its seconds.
///
/// *Ranks.* A rank does one thing at a time: overheads of its messages, copies and reductions queue up in the order in
/// which they become possible. Inside of a node a message is copied by both of its ranks at once, at the level's stream
/// rate. *Edges.* A message between nodes uses every edge on its way up and down, each direction apart, from when it
/// leaves its sender until the slowest of them has let it through: the factor of contention follows from the messages
/// that are there. Each edge shares by itself, so that an edge may serve a message that waits for another one. Messages
/// between the same two ranks follow each other. Then comes the latency. *Waiting.* Messages longer than
/// Costs::eager_bytes start when their receiver is there, after a round trip. Switches that combine, and other jobs but
/// for JobLevel::load, are left out.
///
/// Cost: O(log) a step and edge; memory about 60 bytes a step. `block_bytes` as for plan::count. Throws base::Error
/// where lists don't fit or programs don't match.
Prediction predict(const plan::Plan& plan, const topology::Job& job, const std::vector<std::int64_t>& block_bytes,
                   const Costs& costs, Sharing sharing = Sharing::evenly);

/// The same for an algorithm: makes the programs one after the other and keeps none, for jobs whose whole plan is too
/// large to hold.
Prediction predict(const topology::Job& job, const plan::Request& request, const collectives::Spec& spec,
                   const Costs& costs, Sharing sharing = Sharing::evenly);

}  // namespace palmette::model
