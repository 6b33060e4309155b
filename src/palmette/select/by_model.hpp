// Selection by the cost model where no measurement exists.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "palmette/collectives/registry.hpp"
#include "palmette/topology/job_costs.hpp"

namespace palmette::select {

/// The few algorithms of a collective worth comparing at run time: together they cover small and large data, few and
/// many ranks. Each has a formula in its row.
const std::vector<collectives::Spec>& candidates(plan::Collective collective);

/// An algorithm and its estimated time.
struct Estimate {
    collectives::Spec spec;
    double seconds = 0;
    bool played = false;  ///< `seconds` is from a simulation instead of a formula
};

/// The `candidates` that serve the request and have a formula, fastest first; ties go to the one listed first. A pure
/// function, so that all ranks get the same list.
std::vector<Estimate> rank_by_model(const topology::Job& job, const plan::Request& request,
                                    const std::vector<collectives::Spec>& candidates);

/// Simulates a few candidates (model::predict_within): their times in seconds, infinity for one that takes too long to
/// simulate. All ranks of a call must get the same times.
using Plays = std::function<std::vector<double>(const topology::Job& job, const plan::Request& request,
                                                const std::vector<collectives::Spec>& candidates)>;

/// Plays that simulate one candidate after the other, each no further than the best of those before.
std::vector<double> play_in_turn(const topology::Job& job, const plan::Request& request,
                                 const std::vector<collectives::Spec>& candidates);

/// The fastest of them; nothing where none serves the request, or where ranks don't know each other's sizes. `lost`:
/// texts of candidates that are left out; null: none.
///
/// Pipelined algorithms are excluded on low-latency networks. Without `plays`, formulas decide. With `plays`, they only
/// choose which candidates to simulate, since they are off by a factor of up to 3 where placement and shape of the job
/// are irregular; where the one that they prefer takes too long to simulate, or on one node, they decide.
std::optional<Estimate> best_by_model(const topology::Job& job, const plan::Request& request,
                                      const std::vector<std::string>* lost = nullptr, const Plays* plays = nullptr);

}  // namespace palmette::select
