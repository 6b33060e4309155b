// Closed-form time estimates of algorithms, cheap enough to be evaluated inside a collective call.
#pragma once

#include <optional>

#include "palmette/collectives/registry.hpp"
#include "palmette/topology/job_costs.hpp"
#include "palmette/topology/tiers.hpp"

namespace palmette::model {

/// Approximates predict() by the formulas of the algorithms' rows instead of a simulation. Assumes that all groups of a
/// level are as large as its largest and all edges as slow as its slowest; stages are added up, or overlap where the
/// algorithm pipelines blocks in segments.
///
/// Depends only on what all ranks know, so that all compute the same value. Time O(levels * log ranks).
class Estimator {
  public:
    /// The job must outlive it.
    Estimator(const topology::Job& job, const topology::Costs& costs) : job_(job), tiers_(job, costs) {}

    /// Seconds; nothing for an algorithm without a formula. Meaningless where the algorithm refuses the request
    /// (collectives::Algorithm::refuse). Throws base::Error on a bad value in the spec.
    std::optional<double> operator()(const plan::Request& request, const collectives::Spec& spec) const;

  private:
    static std::optional<double> on(const topology::Tiers& tiers, const plan::Request& request,
                                    const collectives::Spec& spec);

    const topology::Job& job_;
    topology::Tiers tiers_;
};

}  // namespace palmette::model
