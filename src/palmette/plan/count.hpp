// Static traffic analysis of a plan: messages and bytes on every link, without running it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "palmette/plan/plan.hpp"

namespace palmette::plan {

/// Traffic over the edge between one group and the rest, per direction.
struct LinkCount {
    std::int64_t messages_out = 0, messages_in = 0;
    std::int64_t bytes_out = 0, bytes_in = 0;
    std::int64_t busiest_bytes() const { return bytes_out > bytes_in ? bytes_out : bytes_in; }
};

/// Traffic at one level of the job: a message counts once if it leaves a group of this level.
struct LevelCount {
    std::string level;
    std::int64_t messages = 0;
    std::int64_t bytes = 0;
    std::vector<LinkCount> links;  ///< by group
};

struct PlanCount {
    std::int64_t messages = 0;
    std::int64_t bytes = 0;
    std::int64_t copied_bytes = 0;   ///< within ranks
    std::int64_t pulled_bytes = 0;   ///< read from the memory of other ranks of the node
    std::int64_t reduced_bytes = 0;  ///< results of reduce and pull_reduce
    /// Outermost first, as in the job; then, for a plan with service positions, `aggregator` with their links.
    std::vector<LevelCount> levels;
    /// The link that takes longest: seconds where capacities are known, else most bytes. level < 0: nothing crosses
    /// any.
    std::int32_t busiest_level = -1;
    std::int32_t busiest_group = -1;
    double busiest_s = 0;            ///< bytes / capacity of that link, 0 where no capacity is known
    std::int64_t longest_chain = 0;  ///< critical path, in messages and pulls
};

/// `block_bytes[b]`: length of block b; a single entry stands for Request::block_bytes. Throws base::Error on a list of
/// another length.
PlanCount count(const Plan& plan, const Job& job, const std::vector<std::int64_t>& block_bytes);

}  // namespace palmette::plan
