// Messages to ranks that don't know who sends to them: sparse dynamic data exchange.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "palmette/runtime/settings/settings.hpp"

namespace palmette::runtime {

/// What this rank sends: counts[i] elements to rank to[i], one block after the other from `data` on.
struct Outgoing {
    std::vector<int> to;  ///< each rank at most once
    std::vector<std::int64_t> counts;
    const void* data = nullptr;
    MPI_Datatype type = MPI_BYTE;
    std::int64_t element_bytes = 1;
    std::string complaint = {};  ///< what is wrong with this rank's arguments: an error on all ranks
};

/// What came to this rank, in the order of senders.
struct Arrivals {
    std::vector<int> from;
    std::vector<std::int64_t> counts;
    std::vector<std::vector<char>> blocks;
};

/// Up to so many ranks of a communicator counting is faster: a reduce_scatter of 8 bytes a rank takes less than a
/// latency more than a barrier, and messages need no receipt.
inline constexpr int most_counted_ranks = 1024;

/// Collective over `comm`; the method depends on its size only. Up to `most_counted` ranks a reduce_scatter tells each
/// how many messages come; with more, messages are synchronous, and a nonblocking barrier that each rank enters when
/// its own have been received ends when all have: memory and messages of a rank are those of its partners. Hoefler,
/// Siebert, Lumsdaine, PPoPP 2010 (both; the second is "nonblocking consensus"). Throws base::Error on all ranks if
/// another rank's or this one's arguments are wrong.
Arrivals exchange_unexpected(MPI_Comm comm, const Outgoing& outgoing, const Settings& settings,
                             int most_counted = most_counted_ranks);

}  // namespace palmette::runtime
