#pragma once

#include <cstddef>
#include <cstdint>

namespace palmette::topology {

/// The index in a vector of a rank, a place or an edge, whose numbers are signed.
constexpr std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace palmette::topology
