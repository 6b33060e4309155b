// Spin, then yield, then sleep: how a rank polls a flag in shared memory.
#pragma once

#include <cstdint>

#include "palmette/node/yield_backoff.hpp"

namespace palmette::node {

/// CPU pause hint for spin loops.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");  // empties the pipeline; `yield` is nothing on most cores, and polls are counted
#endif
}

/// Takes the place of pauses where no time passes while a rank polls: in simulations.
class Pauses {
  public:
    virtual ~Pauses() = default;
    /// Waits until a flag that this rank polls may have changed. True: the caller should then progress the MPI.
    virtual bool pause() = 0;
};

/// Spins where each rank has a core, yields where the node is oversubscribed, and sleeps in a long wait.
/// Oversubscription is known from the counts or detected while waiting: a yield that takes long shows that others run
/// on this core. Keep one per communicator, so that what it learned is kept.
///
///     spin_wait.reset();
///     while (!flag()) if (spin_wait.pause()) let_mpi_progress();
class SpinWait {
  public:
    /// `ranks` of the job on this node, and the `cores` that any of them may run on.
    SpinWait(int ranks, int cores) : enough_cores_(ranks <= cores) {}
    /// `pauses` must outlive it.
    explicit SpinWait(Pauses& pauses) : pauses_(&pauses) {}

    /// Resets the backoff for a new wait. (Without it, the next wait counts as part of the last one and sleeps sooner.)
    void reset() { polls_ = yields_ = 0; }

    /// To be called after each unsuccessful poll. True every few microseconds: the caller should then progress the MPI.
    bool pause() {
        if (pauses_) [[unlikely]]
            return pauses_->pause();
        ++polls_;
        if (backoff_.oversubscribed() || !enough_cores_ || polls_ % spins_between_yields == 0) return yield_or_sleep();
        relax();
        return polls_ % spins_between_progress == 0;
    }

    /// Whether ranks share cores, by the counts or as detected lately.
    [[nodiscard]] bool oversubscribed() const { return !enough_cores_ || backoff_.oversubscribed(); }

  private:
    static constexpr std::uint32_t spins_between_yields = 256;
    static constexpr std::uint32_t spins_between_progress = 64;

    bool yield_or_sleep();

    Pauses* pauses_ = nullptr;
    bool enough_cores_ = true;
    YieldBackoff backoff_;
    std::uint32_t polls_ = 0;                  ///< unsuccessful ones of this wait
    std::uint32_t yields_ = 0;                 ///< of this wait
    YieldBackoff::Clock::time_point begin_{};  ///< of this wait's first yield
};

}  // namespace palmette::node
