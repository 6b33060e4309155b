// Where inside of its host this process is bound.
#pragma once

#include <cstdint>

namespace palmette::runtime {

/// Logical numbers of the socket, NUMA node and shared L3 that hold all processors this process may run on; -1 where the
/// process may run on several of them or nothing is known. Taken from the kernel's own description (/sys/devices/system), which costs
/// less at start-up than building an hwloc topology in every rank.
struct NodePlace {
    std::int32_t socket = -1;
    std::int32_t numa = -1;
    std::int32_t l3 = -1;
    std::int32_t core = -1;
};

NodePlace find_node_place();

}  // namespace palmette::runtime
