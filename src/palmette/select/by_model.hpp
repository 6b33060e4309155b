// Selection by the cost model where no measurement exists.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "palmette/collectives/registry.hpp"
#include "palmette/model/costs.hpp"

namespace palmette::select {

/// The few algorithms of a collective worth comparing at run time: together they cover small and large data, few and
/// many ranks. Each has a formula in model::estimate.
const std::vector<collectives::Spec>& candidates(plan::Collective collective);

/// An algorithm and its estimated time.
struct Estimated {
    collectives::Spec spec;
    double seconds = 0;
};

/// Those of `candidates` that serve the request and have a formula, fastest first; ties go to the one listed first. A
/// pure function, so that all ranks get the same list.
std::vector<Estimated> rank_by_model(const topology::Job& job, const plan::Request& request,
                                     const std::vector<collectives::Spec>& candidates);

/// The fastest of them, excluding pipelined algorithms on low-latency networks; nothing where none serves the request,
/// or where ranks don't know each other's sizes. `lost`: texts of candidates that are left out; null: none.
std::optional<Estimated> best_by_model(const topology::Job& job, const plan::Request& request,
                                       const std::vector<std::string>* lost = nullptr);

}  // namespace palmette::select
