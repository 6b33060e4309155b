// Integers that must not be mixed up have types of their own.
#pragma once

#include <compare>
#include <cstdint>
#include <ostream>

namespace palmette::base {

/// Number of ranks, blocks, bytes.
using Count = std::int64_t;

/// A rank in the communicator that a plan is made for.
struct Rank {
    std::int32_t value = -1;
    friend auto operator<=>(const Rank&, const Rank&) = default;
};

/// A place in topology order: positions 0 to p-1 run through the machine host by host, leaf by leaf.
struct Position {
    std::int32_t value = -1;
    friend auto operator<=>(const Position&, const Position&) = default;
};

inline std::ostream& operator<<(std::ostream& out, Rank rank) { return out << rank.value; }
inline std::ostream& operator<<(std::ostream& out, Position position) { return out << position.value; }

}  // namespace palmette::base
