#include "palmette/runtime/patience.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace palmette::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

/// A yield to nobody returns within a microsecond; one that took this long gave the core to somebody.
constexpr microseconds long_yield{10};
/// How many quiet yields it takes to believe that the core is ours again.
constexpr int stays_crowded = 64;
/// How long before we sleep as well: long with a core to ourselves, where nobody gains by it, short where others work.
constexpr microseconds awake_alone{2000};
constexpr microseconds awake_crowded{200};
constexpr microseconds shortest_nap{50};
constexpr microseconds longest_nap{200};
constexpr std::uint32_t yields_between_progress = 4;

}  // namespace

bool Patience::give_way() {
    const Clock::time_point before = Clock::now();
    if (yields_ == 0) begin_ = before;
    sched_yield();
    const Clock::time_point after = Clock::now();
    if (after - before >= long_yield)
        crowded_ = stays_crowded;
    else if (crowded_ > 0)
        --crowded_;
    const bool progress = ++yields_ % yields_between_progress == 0 || !crowded();
    if (after - begin_ < (crowded() ? awake_crowded : awake_alone)) return progress;
    // The longer it has taken, the less a longer nap adds.
    const auto waited = std::chrono::duration_cast<microseconds>(after - begin_);
    std::this_thread::sleep_for(std::clamp(waited / 8, shortest_nap, longest_nap));
    return true;
}

}  // namespace palmette::runtime
