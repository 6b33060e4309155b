#include "palmette/model/bound/one_port.hpp"

#include <algorithm>
#include <cmath>

namespace palmette::model {

std::int32_t doublings(std::int64_t members) {
    std::int32_t out = 0;
    for (std::int64_t informed = 1; informed < members; informed *= 2) ++out;
    return out;
}

BlockRounds least_rounds(const OnePort& port, std::int64_t bytes, std::int64_t element_bytes) {
    const std::int64_t q = doublings(port.members);
    if (q == 0) return {};
    const double all_s = port.bytes_per_s > 0 ? static_cast<double>(bytes) / port.bytes_per_s : 0;
    const auto of = [&](std::int64_t n) {
        const std::int64_t rounds = n - 1 + q;
        return BlockRounds{n, rounds, static_cast<double>(rounds) * (port.latency_s + all_s / static_cast<double>(n))};
    };
    const std::int64_t most = std::max<std::int64_t>(1, bytes / std::max<std::int64_t>(1, element_bytes));
    // Convex in n, with its least value at sqrt((q - 1) all_s / latency_s).
    const double at = port.latency_s > 0 ? std::sqrt(static_cast<double>(q - 1) * all_s / port.latency_s)
                                         : static_cast<double>(q > 1 && all_s > 0 ? most : 1);
    const auto below = static_cast<std::int64_t>(std::clamp(std::floor(at), 1.0, static_cast<double>(most)));
    const BlockRounds fewer = of(below), more = of(std::min(below + 1, most));
    return more.seconds < fewer.seconds ? more : fewer;
}

double least_collecting_s(const OnePort& port, std::int64_t bytes) {
    const double others = static_cast<double>(port.members - 1) * static_cast<double>(bytes);
    return doublings(port.members) * port.latency_s + (port.bytes_per_s > 0 ? others / port.bytes_per_s : 0);
}

}  // namespace palmette::model
