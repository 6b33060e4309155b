#include "palmette/node/spin_wait.hpp"

namespace palmette::node {
namespace {

using Clock = YieldBackoff::Clock;
using std::chrono::microseconds;

/// Yielding time before sleeping: long where the rank has a core to itself and no other gains by a sleep, short where
/// oversubscribed.
constexpr microseconds sleep_after_alone{2000};
constexpr microseconds sleep_after_oversubscribed{200};
constexpr std::uint32_t yields_between_progress = 4;

}  // namespace

bool SpinWait::yield_or_sleep() {
    if (yields_ == 0) begin_ = Clock::now();
    const Clock::time_point now = backoff_.yield();
    const bool progress = ++yields_ % yields_between_progress == 0 || !oversubscribed();
    if (now - begin_ < (oversubscribed() ? sleep_after_oversubscribed : sleep_after_alone)) return progress;
    YieldBackoff::sleep(now - begin_);
    return true;
}

}  // namespace palmette::node
