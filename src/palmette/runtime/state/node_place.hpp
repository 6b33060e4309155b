// CPU binding: where inside of its host this process is bound.
#pragma once

#include <cstdint>

namespace palmette::runtime {

/// Logical numbers of the socket, NUMA node, shared L3 and core that hold all processors this process may run on; -1
/// where it may run on several of them or nothing is known. From hwloc where its library can be loaded, else from the
/// kernel's own description (/sys/devices/system).
struct NodePlace {
    std::int32_t socket = -1;
    std::int32_t numa = -1;
    std::int32_t l3 = -1;
    std::int32_t core = -1;
};

NodePlace find_node_place();

}  // namespace palmette::runtime
