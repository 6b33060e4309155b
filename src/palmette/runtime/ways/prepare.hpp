// Which way carries out the calls of a plan.
#pragma once

#include <optional>
#include <string>

#include "palmette/runtime/state/communicator.hpp"

namespace palmette::runtime {

/// Aggregators that a route counts on, and that don't serve.
struct MissingNetwork {
    topology::Aggregator::Kind kind;
    std::string why;
};

/// For a plan whose route is chosen: makes its program, binds it where lengths are uniform, and gives it its way.
/// Collective where aggregators are joined; where they don't serve, and nobody has forced them, the route must be
/// chosen anew without them, on all ranks. Throws base::Error where the algorithm can't serve.
std::optional<MissingNetwork> prepare_way(Communicator& state, CachedPlan& plan, const Settings& settings);

}  // namespace palmette::runtime
