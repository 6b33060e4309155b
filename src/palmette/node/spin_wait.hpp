// Spin, then yield, then sleep: how a rank polls a flag in shared memory.
#pragma once

#include <cstdint>

#include "palmette/node/yield_backoff.hpp"

namespace palmette::runtime {

/// Tells the processor that this is a spin loop.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Spins where the ranks have a core each, gives way where they don't, and sleeps when it takes long. Which of these is
/// found out by the way: besides the counts, a yield that takes long shows that others want this core. Keep one per
/// communicator, so that what it learned is kept.
///
///     spin_wait.fresh();
///     while (!flag()) if (spin_wait.pause()) let_mpi_progress();
class SpinWait {
  public:
    /// `ranks` of the job on this node, and the `cores` that any of them may run on.
    SpinWait(int ranks, int cores) : enough_cores_(ranks <= cores) {}

    /// A new wait begins. (Left out, the next wait counts as part of the last one and sleeps sooner.)
    void fresh() { polls_ = yields_ = 0; }

    /// Call it once for each poll in vain. True every now and then, a few microseconds apart: the MPI needs a chance to
    /// progress.
    bool pause() {
        ++polls_;
        if (backoff_.oversubscribed() || !enough_cores_ || polls_ % spins_between_yields == 0) return yield_or_sleep();
        relax();
        return polls_ % spins_between_progress == 0;
    }

    /// Whether ranks share cores, as far as it has been seen lately.
    [[nodiscard]] bool oversubscribed() const { return !enough_cores_ || backoff_.oversubscribed(); }

  private:
    static constexpr std::uint32_t spins_between_yields = 256;
    static constexpr std::uint32_t spins_between_progress = 64;

    bool yield_or_sleep();

    bool enough_cores_;
    YieldBackoff backoff_;
    std::uint32_t polls_ = 0;                  ///< in vain, in this wait
    std::uint32_t yields_ = 0;                 ///< in this wait
    YieldBackoff::Clock::time_point begin_{};  ///< of this wait's first yield
};

}  // namespace palmette::runtime
