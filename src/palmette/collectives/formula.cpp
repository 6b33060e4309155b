#include "palmette/collectives/formula.hpp"

#include <cmath>

#include "palmette/plan/space.hpp"

namespace palmette::collectives {

FormulaInput::FormulaInput(const Tiers& tiers_, const Request& request_, const Spec& spec_)
    : tiers(tiers_),
      request(request_),
      spec(spec_),
      bytes(static_cast<double>(std::max<std::int64_t>(request_.block_bytes, 0))),
      combines(plan::is_reduction(request_.collective)),
      to_root(request_.collective == Collective::gather || request_.collective == Collective::reduce),
      shares(request_.shared_memory) {}

double FormulaInput::segments(double length) const {
    const auto segment = static_cast<double>(spec.size("segment", 0));
    if (segment <= 0 || length <= segment) return 1;
    return std::min(static_cast<double>(most_slices), std::ceil(length / segment));
}

double shared_in_node_s(const Tiers& tiers, double bytes, double readers, double combined) {
    // Reading another rank's flag misses the cache.
    const double misses = std::max(combined, 1.0) * assumed::cache_miss_s;
    const double read = misses + (combined > 0 ? tiers.pull_reduce_s(combined * bytes) : tiers.copy_s(bytes));
    return tiers.intra_node().latency_s + tiers.copy_s(bytes) +
           std::max(read, tiers.memory_s(std::max(readers, combined) * bytes));
}

}  // namespace palmette::collectives
