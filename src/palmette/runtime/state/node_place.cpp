#include "palmette/runtime/state/node_place.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "palmette/base/text.hpp"
#include "palmette/runtime/state/hwloc_place.hpp"

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

/// Groups all processors by `name_of(cpu)`, numbers the groups by their first processor, and returns the number of the
/// one that holds all `allowed`, or -1.
template <class NameOf>
std::int32_t common_group(const std::vector<int>& online, const std::vector<int>& allowed, NameOf name_of) {
    std::vector<std::string> names;
    std::int32_t found = -1;
    for (const int cpu : online) {
        const std::optional<std::string> name = name_of(cpu);
        if (!name) return -1;
        auto at = std::find(names.begin(), names.end(), *name);
        if (at == names.end()) at = names.insert(names.end(), *name);
        if (!std::binary_search(allowed.begin(), allowed.end(), cpu)) continue;
        const auto group = static_cast<std::int32_t>(at - names.begin());
        if (found >= 0 && found != group) return -1;
        found = group;
    }
    return found;
}

std::string of_cpu(int cpu, std::string_view file) { return base::cat("/sys/devices/system/cpu/cpu", cpu, "/", file); }

std::int32_t common_numa_node(const std::vector<int>& allowed) {
    const auto nodes = first_line("/sys/devices/system/node/has_cpu");
    if (!nodes) return -1;
    std::int32_t logical = 0;
    for (const int node : processor_list(*nodes)) {
        const auto list = first_line(base::cat("/sys/devices/system/node/node", node, "/cpulist"));
        if (!list) return -1;
        const std::vector<int> cpus = processor_list(*list);
        if (std::includes(cpus.begin(), cpus.end(), allowed.begin(), allowed.end())) return logical;
        ++logical;
    }
    return -1;
}

}  // namespace

NodePlace find_node_place() {
#if defined(PALMETTE_ABI_SMPI)
    // The simulating machine says nothing about the placement of a simulated rank.
    return {};
#endif
    const std::vector<int> allowed = allowed_processors();
    const auto online_text = first_line("/sys/devices/system/cpu/online");
    const std::vector<int> online = processor_list(online_text.value_or(""));
    // A rank that isn't bound is in no part of its host. Only others need hwloc, whose start costs milliseconds.
    if (!online.empty() && std::includes(allowed.begin(), allowed.end(), online.begin(), online.end())) return {};
    if (const auto place = hwloc_place()) return *place;
    NodePlace place;
    if (allowed.empty() || online.empty()) return place;
    place.socket =
        common_group(online, allowed, [](int cpu) { return first_line(of_cpu(cpu, "topology/physical_package_id")); });
    place.numa = common_numa_node(allowed);
    place.l3 =
        common_group(online, allowed, [](int cpu) { return first_line(of_cpu(cpu, "cache/index3/shared_cpu_list")); });
    place.core = common_group(online, allowed, [](int cpu) -> std::optional<std::string> {
        const auto package = first_line(of_cpu(cpu, "topology/physical_package_id"));
        const auto core = first_line(of_cpu(cpu, "topology/core_id"));
        if (!package || !core) return std::nullopt;
        return *package + "/" + *core;
    });
    return place;
}

}  // namespace palmette::runtime
