// Who sends how much to whom, and which calls send it over one link.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/trace/events.hpp"

namespace palmette::trace {

/// Messages from one process to another that the program itself sent.
struct PairTraffic {
    std::int32_t from = 0, to = 0;
    std::uint64_t messages = 0;
    double bytes = 0;
};
/// Traffic by pair of processes. Cost: O(calls log pairs).
std::vector<PairTraffic> sent(const Trace& trace);

/// What calls of one function from one place have sent over a link, as far as it is known who sent to whom.
struct LinkUser {
    std::uint32_t function = 0, path = 0;
    double bytes_out = 0, bytes_in = 0;
};
/// Collectives that the MPI itself did: as the root, or rank 0, called them.
struct OwnCollectives {
    std::uint32_t function = 0, path = 0, communicator = 0;
    std::int32_t root = -1;
    std::uint64_t bytes = 0, calls = 0;
};
struct LinkUse {
    std::vector<LinkUser> users;
    std::vector<OwnCollectives> unserved;
};
/// How calls used the link out of `group`. `group_of`: by rank. Cost: O(calls log(functions paths)).
LinkUse link_use(const Trace& trace, const std::vector<std::int32_t>& group_of, std::int32_t group);

}  // namespace palmette::trace
