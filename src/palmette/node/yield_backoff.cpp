#include "palmette/node/yield_backoff.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace palmette::node {
namespace {

using std::chrono::microseconds;

/// With an empty run queue a yield returns within a microsecond; one that took this long ran another thread meanwhile.
constexpr microseconds long_yield{10};
constexpr int yields_until_free = 64;
constexpr microseconds shortest_sleep{50};
constexpr microseconds longest_sleep{200};

}  // namespace

YieldBackoff::Clock::time_point YieldBackoff::yield() {
    const Clock::time_point before = Clock::now();
    sched_yield();
    const Clock::time_point after = Clock::now();
    if (after - before >= long_yield)
        oversubscribed_ = yields_until_free;
    else if (oversubscribed_ > 0)
        --oversubscribed_;
    return after;
}

void YieldBackoff::sleep(Clock::duration waited) {
    const auto share = std::chrono::duration_cast<microseconds>(waited) / 8;
    std::this_thread::sleep_for(std::clamp(share, shortest_sleep, longest_sleep));
}

}  // namespace palmette::node
