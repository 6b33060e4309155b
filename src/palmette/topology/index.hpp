#pragma once

#include <cstddef>
#include <cstdint>

namespace palmette::topology {

/// Of a rank, a place or an edge, which are signed, as an index of a vector.
constexpr std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace palmette::topology
