#include "palmette/runtime/start/node_place.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmette/base/text.hpp"

namespace palmette::runtime {
namespace {

/// The processors that this process may run on; empty when the kernel doesn't say.
std::vector<int> allowed_processors() {
    std::vector<int> out;
    for (int size = 1024; size <= 1 << 18; size *= 4) {
        cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(size));
        const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(size));
        const bool done = set && sched_getaffinity(0, bytes, set) == 0;
        for (int cpu = 0; done && cpu < size; ++cpu)
            if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set)) out.push_back(cpu);
        CPU_FREE(set);
        if (done) break;
    }
    return out;
}

std::optional<std::string> first_line(const std::string& path) {
    std::ifstream in(path);
    std::string line;
    if (!std::getline(in, line)) return std::nullopt;
    return line;
}

/// "0-3,8" -> 0, 1, 2, 3, 8.
std::vector<int> processor_list(std::string_view text) {
    std::vector<int> out;
    for (const std::string_view part : base::split(base::trim(text), ',')) {
        int low = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), low);
        if (error != std::errc()) return {};
        int high = low;
        if (end != part.data() + part.size() && *end == '-') std::from_chars(end + 1, part.data() + part.size(), high);
        for (int cpu = low; cpu <= high; ++cpu) out.push_back(cpu);
    }
    return out;
}

/// By processor: the first processor of the object of one kind that it is part of, -1 where none is known. Reads one
/// list of processors for each object. Empty where the kernel doesn't say.
std::vector<int> first_of_objects(const std::string& system, const std::vector<int>& online, std::string_view file) {
    std::vector<int> first(static_cast<std::size_t>(online.back()) + 1, -1);
    for (const int cpu : online) {
        if (first[static_cast<std::size_t>(cpu)] >= 0) continue;
        const auto list = first_line(base::cat(system, "/cpu/cpu", cpu, "/", file));
        if (!list) return {};
        first[static_cast<std::size_t>(cpu)] = cpu;
        for (const int other : processor_list(*list))
            if (other >= 0 && static_cast<std::size_t>(other) < first.size())
                first[static_cast<std::size_t>(other)] = cpu;
    }
    return first;
}

std::vector<int> first_of_numa_nodes(const std::string& system, const std::vector<int>& online) {
    const auto nodes = first_line(system + "/node/has_cpu");
    if (!nodes) return {};
    std::vector<int> first(static_cast<std::size_t>(online.back()) + 1, -1);
    for (const int node : processor_list(*nodes)) {
        const std::vector<int> cpus =
            processor_list(first_line(base::cat(system, "/node/node", node, "/cpulist")).value_or(""));
        for (const int cpu : cpus)
            if (cpu >= 0 && static_cast<std::size_t>(cpu) < first.size())
                first[static_cast<std::size_t>(cpu)] = cpus.front();
    }
    return first;
}

/// By processor, the first one of its object of some kind, as of `first_of_objects`.
using Kind = std::vector<int>;

/// Whether each object of `inner` lies in one object of `outer`, or touches none.
bool holds(const Kind& outer, const Kind& inner, const std::vector<int>& online) {
    constexpr int unseen = -2;
    Kind around(inner.size(), unseen);
    for (const int cpu : online) {
        const int object = inner[static_cast<std::size_t>(cpu)];
        if (object < 0) continue;
        int& its = around[static_cast<std::size_t>(object)];
        if (its == unseen) its = outer[static_cast<std::size_t>(cpu)];
        if (its != outer[static_cast<std::size_t>(cpu)]) return false;
    }
    return true;
}

/// The kinds from the outside to the inside, as `nested_groups` of `palmette discover` sorts them: a NUMA node may hold
/// sockets. What cuts across another kind, or isn't known, is left out.
std::vector<std::size_t> nested(const std::array<Kind, 4>& kinds, const std::vector<int>& online) {
    std::vector<std::size_t> order;
    for (const std::size_t kind : {0, 3, 1, 2}) {  // sockets and cores stay whatever else there is
        if (kinds[kind].empty()) continue;
        auto at = order.begin();
        while (at != order.end() && holds(kinds[*at], kinds[kind], online)) ++at;
        if (std::all_of(at, order.end(), [&](std::size_t below) { return holds(kinds[kind], kinds[below], online); }))
            order.insert(at, kind);
    }
    return order;
}

}  // namespace

std::optional<NodePlace> place_by_kernel(const std::string& system, const std::vector<int>& allowed) {
    std::vector<int> online = processor_list(first_line(system + "/cpu/online").value_or(""));
    if (online.empty() || allowed.empty()) return std::nullopt;
    NodePlace place;
    // A rank that isn't bound is in no part of its host.
    if (std::includes(allowed.begin(), allowed.end(), online.begin(), online.end())) return place;
    const std::array<Kind, 4> kinds{first_of_objects(system, online, "topology/core_siblings_list"),
                                    first_of_numa_nodes(system, online),
                                    first_of_objects(system, online, "cache/index3/shared_cpu_list"),
                                    first_of_objects(system, online, "topology/thread_siblings_list")};
    const std::vector<std::size_t> order = nested(kinds, online);
    // Objects are numbered from the outside to the inside, on each level by the first processor; those of no object of
    // a level come behind the others.
    const auto key = [&](int cpu) {
        std::array<int, 5> out{};
        for (std::size_t k = 0; k < order.size(); ++k) {
            const int object = kinds[order[k]][static_cast<std::size_t>(cpu)];
            out[k] = object < 0 ? std::numeric_limits<int>::max() : object;
        }
        out.back() = cpu;
        return out;
    };
    std::sort(online.begin(), online.end(), [&](int a, int b) { return key(a) < key(b); });
    const std::array<std::int32_t*, 4> numbers{&place.socket, &place.numa, &place.l3, &place.core};
    for (const std::size_t k : order) {
        std::vector<int> objects;  // in hwloc's order
        std::int32_t found = -1;
        bool one = true;
        for (const int cpu : online) {
            const int object = kinds[k][static_cast<std::size_t>(cpu)];
            auto at = std::find(objects.rbegin(), objects.rend(), object);
            if (at == objects.rend()) {
                objects.push_back(object);
                at = objects.rbegin();
            }
            if (!std::binary_search(allowed.begin(), allowed.end(), cpu)) continue;
            const auto number = static_cast<std::int32_t>(objects.rend() - at) - 1;
            one = one && object >= 0 && (found < 0 || found == number);
            found = number;
        }
        if (one) *numbers[k] = found;
    }
    return place;
}

namespace {

bool numa_holds_sockets(const std::vector<PlacedRank>& ranks) {
    using Inside = std::map<std::pair<std::int32_t, std::int32_t>, std::set<std::int32_t>>;
    Inside sockets;
    Inside nodes;
    for (const PlacedRank& rank : ranks) {
        if (rank.place.socket < 0 || rank.place.numa < 0) continue;
        sockets[{rank.node, rank.place.numa}].insert(rank.place.socket);
        nodes[{rank.node, rank.place.socket}].insert(rank.place.numa);
    }
    const auto several = [](const Inside& inside) {
        return std::any_of(inside.begin(), inside.end(), [](const auto& one) { return one.second.size() > 1; });
    };
    return several(sockets) && !several(nodes);
}

}  // namespace

std::pair<std::vector<std::string>, std::vector<std::vector<std::int32_t>>> levels_by_kernel(
    const std::vector<PlacedRank>& ranks) {
    const bool numa_first = numa_holds_sockets(ranks);
    std::vector<std::vector<std::int32_t>> keys;
    for (const PlacedRank& rank : ranks) {
        keys.push_back({rank.node, rank.place.socket, rank.place.numa, rank.place.l3});
        if (numa_first) std::swap(keys.back()[1], keys.back()[2]);
    }
    // On a host where some rank is bound to no part of a level, nothing is known of that level.
    std::map<std::int32_t, std::array<bool, 4>> unknown;
    for (const auto& key : keys)
        for (std::size_t l = 1; l < key.size(); ++l) unknown[key[0]][l] = unknown[key[0]][l] || key[l] < 0;
    for (auto& key : keys)
        for (std::size_t l = 1; l < key.size(); ++l)
            if (unknown[key[0]][l]) key[l] = -1;
    std::vector<std::string> names{"node", "socket", "numa", "l3"};
    if (numa_first) std::swap(names[1], names[2]);
    return {std::move(names), std::move(keys)};
}

NodePlace find_node_place() {
#if defined(PALMETTE_ABI_SMPI)
    // The simulating machine says nothing about the placement of a simulated rank.
    return {};
#endif
    // Read in a tenth of a millisecond. hwloc would read the same files and take several to start.
    return place_by_kernel("/sys/devices/system", allowed_processors()).value_or(NodePlace{});
}

}  // namespace palmette::runtime
