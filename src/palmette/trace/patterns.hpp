// Patterns of messages that cost time by themselves: ranks that wait for one another in a chain, and many small
// messages where one would do.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/trace/replay.hpp"

namespace palmette::trace {

/// Calls at one place in which each rank waits for a message of one that has waited itself: what they do comes one
/// after the other.
struct Chain {
    std::uint32_t function = 0, path = 0;  ///< call site at which the last ranks of the chains wait
    std::uint64_t instances = 0;
    std::uint64_t waits = 0;  ///< calls that waited in them
    double waiting_s = 0;     ///< seconds of waiting in the chains and in collectives that wait for a chain's end
    double in_between_s = 0;  ///< what ranks did from the message that they waited for until they sent the next
    std::vector<std::int32_t> processes;  ///< ranks of the longest chain, in order
};

/// Chains through at least three processes, the costliest place first; a chain that comes back to a process ends there.
/// Cost: O(waits log waits) time; memory O(waits).
std::vector<Chain> chains(const Trace& trace, const WaitGraph& awaited);

/// Small messages that ranks send in a row from one place to the same rank each, with little computation between them.
struct MessageRuns {
    static constexpr std::uint64_t most_bytes = 4096;  ///< largest size of a message that counts as small
    static constexpr std::uint64_t least = 16;         ///< messages in a row
    std::uint32_t function = 0, path = 0;
    std::uint64_t runs = 0, messages = 0, bytes = 0;
    double seconds = 0;                            ///< in MPI, from the first to the last message of each run
    std::uint64_t longest = 0, longest_bytes = 0;  ///< messages of the longest run, and their bytes together
    std::int32_t from = -1, to = -1;               ///< processes of that one
};

/// Message runs by call site. Collectives end a run. Cost: O(calls log places).
std::vector<MessageRuns> message_runs(const Trace& trace);

}  // namespace palmette::trace
