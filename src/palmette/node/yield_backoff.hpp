// Yield and back off: detects oversubscription from how long sched_yield takes, and says how long to sleep.
#pragma once

#include <chrono>

namespace palmette::runtime {

/// Learns from yields whether others want this core: one that takes long shows that somebody had it meanwhile.
class YieldBackoff {
  public:
    using Clock = std::chrono::steady_clock;

    /// Yields. Returns when that was over.
    Clock::time_point yield();

    /// Sleeps for a share of the time that was `waited`: the longer it has taken, the less a longer sleep adds.
    static void sleep(Clock::duration waited);

    /// Whether others lately wanted this core.
    [[nodiscard]] bool oversubscribed() const { return oversubscribed_ > 0; }

  private:
    int oversubscribed_ = 0;  ///< so many quiet yields until we believe that the core is ours again
};

}  // namespace palmette::runtime
