// Jobs on machines whose costs the synthetic form can't say.
#pragma once

#include <string>

#include "palmette/topology/job.hpp"

namespace palmette::test {

/// `levels` and `memory`: members of a topology.json, without brackets; nodes are children of the root with so many
/// slots and, where it is above 0, an edge of so many bytes per second. Slots are groups of the level `core` where
/// `levels` has it.
inline topology::Job costed_job(const std::string& levels, const std::string& memory, std::int32_t nodes,
                                std::int32_t slots, double up_bytes_per_s = 0, double load = 0) {
    const bool has_cores = levels.find("core") != std::string::npos;
    const std::string room = has_cores ? "\"inside\":\"x\"" : "\"slots\":" + std::to_string(slots);
    std::string tree;
    for (std::int32_t n = 0; n < nodes; ++n) {
        tree += std::string(n > 0 ? "," : "") + R"({"name":"h)" + std::to_string(n) + R"(","level":"node",)" + room;
        if (up_bytes_per_s > 0) tree += ",\"up_bytes_per_s\":" + std::to_string(up_bytes_per_s);
        if (load > 0) tree += ",\"load\":" + std::to_string(load);
        tree += "}";
    }
    std::string text = R"({"levels":[)" + levels + R"(],"memory":{)" + memory + "},";
    if (has_cores) text += R"("insides":{"x":[{"level":"core","count":)" + std::to_string(slots) + "}]},";
    text += R"("tree":{"name":"x","children":[)" + tree + "]}}";
    const topology::Machine machine = topology::Machine::from_json(base::Json::parse(text));
    return {machine, topology::make_placement(machine, "block")};
}

}  // namespace palmette::test
