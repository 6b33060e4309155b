// What a page draws of a trace, in bounded memory whatever the run's length: shares of time in bins, the longest calls
// and messages one by one, and the load of each link over time.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/trace/waits.hpp"

namespace palmette::trace {

struct OverviewOptions {
    std::int32_t rows = 128;  ///< at most; a row stands for as many processes each as are needed
    std::int32_t bins = 2048;
    std::size_t calls = 40000, messages = 10000;  ///< one by one, at most
    std::int32_t link_bins = 64;
    /// By level of the machine, outermost first, and by rank: the number of the group that the rank sits in, from 0.
    /// The link out of each group is counted. Empty: no links.
    std::vector<std::vector<std::int32_t>> groups;
};

/// A call that is drawn by itself.
struct DrawnCall {
    std::int64_t begin_ns = 0, length_ns = 0, waiting_ns = 0;
    std::uint32_t path = 0;
    std::int32_t process = 0, waits_for = -1;  ///< waits_for: a process; -1: none
    std::uint16_t function = 0;
    std::uint64_t bytes = 0;
};

struct DrawnMessage {
    std::int64_t sent_ns = 0, received_ns = 0;
    std::int32_t from = 0, to = 0;
    double bytes = 0, waiting_s = 0;
};

/// Collectives that the MPI itself has done, of one function, communicator, root and size: how they travel isn't known,
/// only what they must at least move.
struct UnservedCollectives {
    std::uint32_t function = 0, communicator = 0;
    std::int32_t root = -1;
    std::uint64_t bytes = 0;             ///< as the root, or rank 0, has called it
    std::vector<std::uint32_t> by_time;  ///< how many began in each bin of links
};

struct Overview {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::vector<std::int32_t> row_of;  ///< by process
    std::vector<std::int32_t> in_row;  ///< processes, by row
    std::int32_t rows = 0, bins = 0, link_bins = 0;
    /// By row and bin: time in MPI and waiting, as shares of 255, and the function that has more than half of it, or
    /// else one that has much; no_function: none.
    std::vector<std::uint8_t> mpi, waiting, function;
    std::vector<DrawnCall> calls;  ///< the longest, by begin
    std::uint64_t calls_in_all = 0;
    std::vector<DrawnMessage> messages;  ///< the messages that were waited for longest, then the largest ones, by begin
    std::uint64_t messages_in_all = 0;
    /// By level, group and bin, one after the other: bytes that leave a group and that enter it.
    std::vector<double> link_out, link_in;
    std::vector<UnservedCollectives> unserved;
};
inline constexpr std::uint8_t no_function = 255;

/// Finds waits as well, in the same pass. Functions beyond the 254th count as no_function. Cost: as find_waits; memory
/// besides O(rows bins + calls + messages + links link_bins + what plans send).
struct OverviewWithWaits {
    Waits waits;
    Overview overview;
};
OverviewWithWaits view(const Trace& trace, const OverviewOptions& options, const BoundOf& bound_of = {});

}  // namespace palmette::trace
