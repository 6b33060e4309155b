// Sampling rate of online A/B comparisons, bounded by an overhead budget.
#pragma once

#include <cstdint>

#include "palmette/select/verdict.hpp"

namespace palmette::select {

/// Calls from a pair to the next one, so that `cost_s`, what the pair cost, is at most `share` of the time of the calls
/// in between, each of which takes `ours_s` (above 0). Once the verdict is known, a tenth of the share is spent on
/// verifying it.
std::int64_t calls_to_next_pair(double cost_s, double ours_s, double share, Verdict verdict);

}  // namespace palmette::select
