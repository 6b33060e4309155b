#include "palmette/compose/formulas.hpp"

#include <algorithm>
#include <cmath>

namespace palmette::compose {

double ring_s(std::int32_t participants, double bytes, std::int32_t depth, LinkCost link) {
    if (participants < 2) return 0;
    return (link.latency_s + bytes / (link.bytes_per_s * depth)) * (depth + participants - 2);
}

double tree_s(std::int32_t participants, double bytes, std::int32_t radix, LinkCost link) {
    std::int32_t rounds = 0;
    for (std::int64_t reached = 1; reached < participants; reached *= radix) ++rounds;
    return (link.latency_s + bytes / link.bytes_per_s) * (radix - 1) * rounds;
}

double direct_s(std::int32_t participants, double bytes, LinkCost link) {
    return (link.latency_s + bytes / link.bytes_per_s) * (participants - 1);
}

double scatter_allgather_s(std::int32_t participants, double bytes, LinkCost link) {
    return 2 * (link.latency_s + bytes / (link.bytes_per_s * participants)) * (participants - 1);
}

std::int32_t best_depth(std::int32_t participants, double bytes, LinkCost link, std::int32_t most) {
    if (participants <= 2 || bytes <= 0) return 1;
    // Without latency, deeper pipelining always pays.
    if (link.latency_s <= 0) return most;
    const double best = std::sqrt(bytes * (participants - 2) / (link.bytes_per_s * link.latency_s));
    if (best >= most) return most;
    const auto below = std::max(1, static_cast<std::int32_t>(best));
    const std::int32_t above = std::min(most, below + 1);
    return ring_s(participants, bytes, below, link) <= ring_s(participants, bytes, above, link) ? below : above;
}

}  // namespace palmette::compose
