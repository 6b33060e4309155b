// Machines and jobs that many tests share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "palmette/topology/job.hpp"

namespace palmette::test {

/// Machines from one host to two tiers of switches with uneven groups; each has room for at least 33 ranks.
inline const std::vector<std::string>& machines() {
    static const std::vector<std::string> specs{
        "1node:33core",
        "33node",
        "3leaf:3+3+3node:4core",
        "4leaf:1+5+2+3node:2+4+3core",
        "2pod:2+3leaf:2+1+3node:2socket:2+3core",
    };
    return specs;
}

inline const std::vector<std::string>& placements() {
    static const std::vector<std::string> forms{"block", "cyclic", "random:3"};
    return forms;
}

inline topology::Job job_on(std::string_view machine, std::string_view placement = "block", std::int32_t ranks = 0) {
    const topology::Machine made = topology::Machine::synthetic(machine);
    return {made, topology::make_placement(made, placement, ranks)};
}

/// A synthetic job with a latency and an overhead for each level, smaller from level to level.
inline topology::Job costed_job_on(std::string_view machine, std::string_view placement, std::int32_t ranks) {
    const base::Json plain = topology::Machine::synthetic(machine).to_json();
    base::Json costed = base::Json::object();
    for (const auto& [name, value] : plain.members("machine")) {
        if (name != "levels") {
            costed.set(name, value);
            continue;
        }
        base::Json levels = base::Json::array();
        double latency_s = 8e-6;
        for (base::Json level : value.items("levels")) {
            levels.push(level.set("latency_s", latency_s).set("overhead_s", latency_s / 8));
            latency_s /= 2;
        }
        costed.set(name, levels);
    }
    const topology::Machine made = topology::Machine::from_json(costed);
    return {made, topology::make_placement(made, placement, ranks)};
}

}  // namespace palmette::test
