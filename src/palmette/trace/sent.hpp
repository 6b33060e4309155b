// Who sends how much to whom.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/trace/events.hpp"

namespace palmette::trace {

/// Messages from one process to another that the program itself sent.
struct Sent {
    std::int32_t from = 0, to = 0;
    std::uint64_t messages = 0;
    double bytes = 0;
};
/// By pair. Cost: O(calls log pairs).
std::vector<Sent> sent(const Trace& trace);

}  // namespace palmette::trace
