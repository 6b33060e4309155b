// When an allreduce takes the plan through the job's aggregators.
#pragma once

#include <optional>

#include "palmette/select/table.hpp"

namespace palmette::select {

/// The choice of `in_network` where the lower bound with the job's aggregators, the time until they have a first
/// segment of all members, and the agreement of all ranks that ends each operation, are together clearly below the
/// hosts' own lower bound; else nothing. Short vectors (in_network_keeps), which need no agreement, take it where the
/// estimated time is clearly below that of the hosts' best plan. With two groups never, since there is nothing to gain.
/// Depends on the job and the request alone. Time: O(groups), and estimates of all candidates for short ones.
std::optional<Choice> through_aggregators(const Job& job, const plan::Request& request);

}  // namespace palmette::select
