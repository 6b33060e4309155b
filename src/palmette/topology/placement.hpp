// Placement: the host and slot of each rank on a machine.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "palmette/topology/machine.hpp"

namespace palmette::topology {

/// The seat of one rank.
struct Seat {
    std::int32_t host = 0;   ///< index into Machine::hosts()
    std::int32_t slot = -1;  ///< place inside the host, -1: somewhere in it
};

/// Seats of the ranks 0..p-1.
using Placement = std::vector<Seat>;

/// `form` is block, cyclic, random:SEED, hosts=A,B,... or a file (docs/reference/topology-json.md). `ranks` = 0 takes
/// all slots (or all that the list names). Throws base::Error that names the form, the host or the line at fault.
/// random:SEED is a Fisher-Yates shuffle of all slots driven by splitmix64, the same on every machine.
Placement make_placement(const Machine& machine, std::string_view form, std::int32_t ranks = 0);

/// Seats from host names, rank 0 first; slots are taken in order of rank inside each host.
Placement placement_on_hosts(const Machine& machine, const std::vector<std::string>& hosts);

}  // namespace palmette::topology
