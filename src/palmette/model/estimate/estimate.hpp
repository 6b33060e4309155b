// The time of an algorithm in closed form: what a rank can afford to ask while a call waits.
#pragma once

#include <optional>

#include "palmette/collectives/registry.hpp"
#include "palmette/model/costs.hpp"
#include "palmette/model/estimate/estimate_tiers.hpp"

namespace palmette::model {

/// About what predict() says, from formulas instead of a play. A job is taken as if all groups of a level were as large
/// as its largest and all edges as fast as its slowest; stages are added up, or overlap where the algorithm cuts blocks
/// into segments.
///
/// Looks only at what all ranks share, so that all get the same figure. Time O(levels * log ranks), whatever the number
/// of ranks.
class Estimator {
  public:
    /// The job must outlive it.
    Estimator(const topology::Job& job, const Costs& costs) : job_(job), tiers_(job, costs) {}

    /// Seconds; nothing for an algorithm without a formula. Means nothing where the algorithm refuses the request
    /// (collectives::Algorithm::refuse). Throws base::Error on a bad value in the spec.
    std::optional<double> operator()(const plan::Request& request, const collectives::Spec& spec) const;

  private:
    static std::optional<double> on(const Tiers& tiers, const plan::Request& request, const collectives::Spec& spec);

    const topology::Job& job_;
    Tiers tiers_;
};

}  // namespace palmette::model
