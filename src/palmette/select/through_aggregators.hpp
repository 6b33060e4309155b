// When an allreduce takes the plan through the job's aggregators.
#pragma once

#include <optional>

#include "palmette/select/table.hpp"

namespace palmette::select {

/// The choice of `in_network` where the lower bound with the job's aggregators, the time until they have a first
/// segment of all members, and the agreement of all ranks that ends each operation, are together clearly below the
/// hosts' own lower bound; else nothing. With two groups never, since there is nothing to gain. Depends on the job and
/// the request alone. Time: O(groups).
std::optional<Choice> through_aggregators(const Job& job, const plan::Request& request);

}  // namespace palmette::select
