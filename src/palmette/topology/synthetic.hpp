// The synthetic form of a machine as text: "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace palmette::topology {

/// One level of the form, outermost first.
struct SyntheticLevel {
    std::vector<std::int32_t> counts;  ///< groups below the next parent, used in turn and from the beginning again
    std::string name;
    double up_bytes_per_s = 0;  ///< capacity of a group's edge to its parent; 0: unknown
    std::optional<double> latency_s;
    std::vector<double> aggregators;  ///< at each group of the level: capacities of their links; 0: no limit
};

/// All of a form.
struct SyntheticForm {
    std::vector<double> aggregators;  ///< at the top switch
    std::vector<SyntheticLevel> levels;
};

/// Parses the form of docs/reference/topology-json.md; a form without a level `node` calls its innermost one so. Throws
/// base::Error naming the item at fault. O(length of the form).
SyntheticForm parse_synthetic(std::string_view form);

}  // namespace palmette::topology
