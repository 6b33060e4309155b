// Blocks of similar size are counted and compared together.
#pragma once

#include <bit>
#include <cstdint>

namespace palmette::runtime {

/// 0: nothing; k > 0: more than 2^(k-2) bytes, up to 2^(k-1); -1: the ranks don't know each other's sizes.
inline int size_class(std::int64_t bytes) {
    if (bytes < 0) return -1;
    return bytes == 0 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes - 1))) + 1;
}

/// The largest block of a size class; -1 where sizes are unknown.
inline std::int64_t largest_of(int size_class) {
    return size_class <= 0 ? size_class : std::int64_t{1} << (size_class - 1);
}

}  // namespace palmette::runtime
