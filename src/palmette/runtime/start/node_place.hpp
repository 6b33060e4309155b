// CPU binding: where inside of its host this process is bound.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace palmette::runtime {

/// Logical numbers of the socket, NUMA node, shared L3 and core that hold all processors this process may run on; -1
/// where it may run on several of them, is bound to none, or nothing is known.
struct NodePlace {
    std::int32_t socket = -1;
    std::int32_t numa = -1;
    std::int32_t l3 = -1;
    std::int32_t core = -1;
};

/// From the kernel's files; nothing is known where these are missing.
NodePlace find_node_place();

/// By the files below `system` (/sys/devices/system) for a process that may run on `allowed`, in ascending order.
/// Objects are numbered as hwloc numbers them. Nothing where the processors aren't listed. One read for each object.
std::optional<NodePlace> place_by_kernel(const std::string& system, const std::vector<int>& allowed);

/// A rank's host, by any number that is its own, and its place there.
struct PlacedRank {
    std::int32_t node = 0;
    NodePlace place;
};

/// The levels of a job that no file describes, outermost first, and each rank's group on each level, for
/// Job::from_groups. Where NUMA nodes hold sockets, as on machines of several boards, they stand outside of them.
std::pair<std::vector<std::string>, std::vector<std::vector<std::int32_t>>> levels_by_kernel(
    const std::vector<PlacedRank>& ranks);

}  // namespace palmette::runtime
