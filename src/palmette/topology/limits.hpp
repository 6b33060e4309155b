// What is refused because no cluster has it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace palmette::topology {

/// Largest number of a machine's levels: readers go down its tree by recursion, and so do users.
inline constexpr std::size_t most_levels = 64;

/// The most ranks of a job: larger requests are refused before they allocate gigabytes.
inline constexpr std::int64_t most_places = std::int64_t{1} << 24;

}  // namespace palmette::topology
