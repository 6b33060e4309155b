// Clock synchronisation between nodes: one process of each, its leader, compares clocks with another node's along a
// binomial tree. Every wait is bounded, so that nobody hangs where a leader doesn't come.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>

namespace palmette::record {

/// What must be added to this node's clock for that of the first leader's node, and up to how much that may be wrong.
struct ClockOffset {
    std::int64_t offset_ns = 0, error_ns = 0;
};

/// Collective over the leaders' communicator, with a `tag` for each time, but returns after `limit_s` at the latest;
/// nothing where the leader above in the tree hasn't come by then, or doesn't know its own. The offset comes from the
/// quickest of 20 ping-pongs, its error is half of that round trip, added up along the tree. Cost: O(log nodes) of
/// these.
std::optional<ClockOffset> synchronize_clocks(MPI_Comm leaders, int tag, double limit_s);

}  // namespace palmette::record
