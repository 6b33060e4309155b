// The time of an algorithm in closed form: what a rank can afford to ask while a call waits.
#pragma once

#include <optional>

#include "palmette/collectives/registry.hpp"
#include "palmette/model/costs.hpp"

namespace palmette::model {

/// About what predict() says, from formulas instead of a play. A job is taken as if all groups of a level were as large as its largest and all
/// edges as fast as its slowest; stages are added up, or overlap where the algorithm cuts blocks into segments.
///
/// Looks only at what all ranks share, so that all get the same figure. Time O(levels * log ranks), whatever the number of ranks. Nothing for an
/// algorithm without a formula. The algorithm must not refuse the request (collectives::Algorithm::refuse).
/// Throws base::Error on a bad value in the spec.
std::optional<double> estimate(const topology::Job& job, const Costs& costs, const plan::Request& request,
                               const collectives::Spec& spec);

}  // namespace palmette::model
