// A trial of a daemon: a group whose members are all in this process sums numbers.
#pragma once

#include <cstdint>
#include <string>

#include "palmette/aggregate/socket.hpp"

namespace palmette::aggregator {

struct Trial {
    aggregate::Address daemon;
    std::string token_path;
    std::uint16_t members = 2;
    std::uint64_t bytes = 1 << 20;
    std::uint32_t chunk_bytes = 16384;
};

/// Prints what happened; 0, or 1 where the daemon refused, failed or gave a wrong sum. Throws base::Error.
int run_trial(const Trial& trial);

}  // namespace palmette::aggregator
