// What is refused because no cluster has it.
#pragma once

#include <cstddef>

namespace palmette::topology {

/// Of a machine: readers go down its tree by recursion, and so do users.
inline constexpr std::size_t most_levels = 64;

}  // namespace palmette::topology
