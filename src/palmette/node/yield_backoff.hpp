// Yield and back off: detects oversubscription from how long sched_yield takes, and sleeps.
#pragma once

#include <chrono>

namespace palmette::node {

/// Detects from yields whether the core is shared: one that takes long shows that another thread ran on it meanwhile.
class YieldBackoff {
  public:
    using Clock = std::chrono::steady_clock;

    /// Yields. Returns the time after it.
    Clock::time_point yield();

    /// Backoff sleep, proportional to the time `waited` so far within limits: the longer the wait, the smaller the
    /// relative delay that a longer sleep adds.
    static void sleep(Clock::duration waited);

    /// Whether others lately ran on this core.
    [[nodiscard]] bool oversubscribed() const { return oversubscribed_ > 0; }

  private:
    int oversubscribed_ = 0;  ///< short yields still needed before the core counts as exclusive again
};

}  // namespace palmette::node
