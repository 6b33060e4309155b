// Predicts the time of a plan on a job by discrete-event simulation, from the costs of messages, edges and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palmette/collectives/registry.hpp"
#include "palmette/plan/plan.hpp"
#include "palmette/topology/job_costs.hpp"

namespace palmette::model {

using topology::CostAssumption;
using topology::Costs;
using topology::MessageCosts;
namespace assumed = topology::assumed;

/// How messages share an edge: fairly between the pairs of ranks that send over it, as TCP connections and NICs do, or
/// FIFO in order of arrival, as the closed formulas of the literature assume.
enum class Sharing : std::uint8_t { evenly, in_order };

/// Contribution of the messages of one level to the critical path, whose length is the time of the plan.
struct LevelPart {
    std::string level;  ///< or "ranks side by side"
    double latency_s = 0;
    double transfer_s = 0;  ///< bytes on edges or, inside of a node, through shared memory
    double overhead_s = 0;  ///< overheads of the ranks at both ends
    /// Contention: transfer times of all messages of this level over their uncontended times; 1: no contention.
    double contention = 1;
    std::int64_t messages = 0;
    std::int64_t bytes = 0;

    double seconds() const { return latency_s + transfer_s + overhead_s; }
};

struct Prediction {
    double seconds = 0;             ///< until the last rank completes; all start at the same time
    std::vector<LevelPart> levels;  ///< as in the job, then ranks that no level tells apart
    double copy_s = 0;              ///< copies, packing and pulls on the critical path
    double reduce_s = 0;
    std::vector<std::pair<std::string, double>> stages;  ///< contribution of each stage, in order of appearance
};

/// Simulates the programs of all ranks. All parts of a prediction add up to its seconds.
///
/// *Ranks.* A rank executes one step at a time: overheads of its messages, copies and reductions are queued in the
/// order in which they become ready. Intra-node, both ranks copy a message concurrently, at the level's stream rate.
/// *Edges.* An inter-node message occupies every edge on its route up and down, each direction separately, from
/// injection until the slowest of them has transferred it: contention follows from the messages in flight. Each edge is
/// shared independently, so an edge may spend capacity on a message that is bottlenecked at another one. Messages
/// between the same two ranks are serialised. The latency is added after that. *Rendezvous.* Messages longer than
/// Costs::eager_bytes start when their receiver is ready, after a round trip. *Service positions* take no CPU time:
/// their links alone limit them. Other jobs aren't modelled, except by JobLevel::load.
///
/// Time: O(log) per step and edge; memory: about 60 bytes per step. `block_bytes` as for plan::count. Throws
/// base::Error on lists of the wrong length or unmatched steps.
Prediction predict(const plan::Plan& plan, const topology::Job& job, const std::vector<std::int64_t>& block_bytes,
                   const Costs& costs, Sharing sharing = Sharing::evenly);

/// Predicts an algorithm: generates programs one by one without keeping them, for plans too large for memory.
Prediction predict(const topology::Job& job, const plan::Request& request, const collectives::Spec& spec,
                   const Costs& costs, Sharing sharing = Sharing::evenly);

/// Upper bounds of a simulation that is worth its time only while it is short.
struct PlayLimits {
    double seconds = std::numeric_limits<double>::infinity();  ///< predicted time of the plan
    std::size_t steps = 40'000;                                ///< steps of all ranks
    std::size_t regions = 600'000;                             ///< lists of blocks of all ranks' programs
    std::uint64_t events = 120'000;
};

/// predict().seconds, or nothing where the plan exceeds one of the limits. Deterministic: the same on every rank.
/// Takes up to about 100 ms with the default limits (all-to-alls of 256 ranks).
std::optional<double> predict_within(const PlayLimits& limits, const topology::Job& job, const plan::Request& request,
                                     const collectives::Spec& spec, const Costs& costs);

}  // namespace palmette::model
