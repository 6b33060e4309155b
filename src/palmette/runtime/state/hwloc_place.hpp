// The place of this process as hwloc sees it.
#pragma once

#include <optional>

#include "palmette/runtime/state/node_place.hpp"

namespace palmette::runtime {

/// Nothing where palmette was built without hwloc's header or its library can't be loaded (PALMETTE_HWLOC names one
/// that is installed elsewhere than the system's).
std::optional<NodePlace> hwloc_place();

}  // namespace palmette::runtime
