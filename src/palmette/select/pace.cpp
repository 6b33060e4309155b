#include "palmette/select/pace.hpp"

#include <algorithm>

namespace palmette::select {

std::int64_t calls_to_next_pair(double cost_s, double ours_s, double share, Verdict verdict) {
    constexpr double most = 1e12;
    const double spent_share = verdict == Verdict::open ? share : share / 10;
    return 1 + static_cast<std::int64_t>(std::min(cost_s / (spent_share * ours_s), most));
}

}  // namespace palmette::select
