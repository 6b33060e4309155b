// Choosing by predicted time where nobody has measured.
#pragma once

#include <optional>
#include <vector>

#include "palmette/collectives/registry.hpp"
#include "palmette/model/costs.hpp"

namespace palmette::select {

/// The few algorithms of a collective that are worth comparing at run time: between them they suit small and large
/// data, few and many ranks. Each has a formula in model::estimate.
const std::vector<collectives::Spec>& candidates(plan::Collective collective);

/// An algorithm and the time that its formula gives.
struct Estimated {
    collectives::Spec spec;
    double seconds = 0;
};

/// Those of `candidates` that serve the request and have a formula, the fastest first; of equals the one that is listed
/// first. Pure, so that all ranks get the same list.
std::vector<Estimated> rank_by_model(const topology::Job& job, const plan::Request& request,
                                     const std::vector<collectives::Spec>& candidates);

/// The first of them, but for pipelines, which fast networks don't get; nothing where none serves the request, or where
/// ranks don't know each other's sizes.
std::optional<Estimated> best_by_model(const topology::Job& job, const plan::Request& request);

}  // namespace palmette::select
