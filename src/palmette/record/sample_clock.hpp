// What interrupts a thread for its samples: a timer on its CPU clock, or an event of the kernel's on the same time.
// Both tick only while the thread runs, and both signals come when it returns from the kernel, so that no call of the
// program is interrupted.
#pragma once

#if !defined(PALMETTE_ABI_SMPI)

#include <pthread.h>

#include <csignal>
#include <cstdint>

#include "palmette/trace/format.hpp"

namespace palmette::record {

/// Samples a second that timers on threads' CPU clocks give at most: the kernel looks at them at its own ticks.
double most_timer_hertz();

/// Whether this process may have its threads interrupted by the kernel's events, which keep any rate: Linux 5.13, with
/// perf_event_paranoid 1 or CAP_PERFMON, and no debugger, to which SIGTRAP belongs. Each takes an interrupt of its own.
bool may_use_events();

/// One thread's. What isn't said to be async-signal-safe isn't.
class SampleClock {
  public:
    SampleClock() = default;
    ~SampleClock();
    SampleClock(const SampleClock&) = delete;
    SampleClock& operator=(const SampleClock&) = delete;

    /// Begins to interrupt `thread` each `period_ns` of its CPU time. False: the kernel refuses. An event's signal is
    /// SIGTRAP, whatever `signal` is.
    bool begin(trace::SampledBy by, pthread_t thread, pid_t thread_id, int signal, std::uint64_t period_ns);
    void end();
    bool is_on() const { return by_ != trace::SampledBy::nothing; }
    /// Forgets the timers in a forked child, which has none of its parent's.
    void forget();

    /// Async-signal-safe. Not for events.
    void set_period(std::uint64_t period_ns);
    std::uint64_t period_ns() const { return period_ns_; }
    /// Whether the signal is one of this clock's. Async-signal-safe.
    bool is_from(const siginfo_t& signal) const;
    /// Whether it is that of any such clock, also of one that has ended since.
    static bool may_be_from_one(const siginfo_t& signal);
    /// How much CPU time a signal stands for: all since the one before. Async-signal-safe, 0.1 us, rarely 2 us.
    std::uint64_t take_spent_ns(const siginfo_t& signal);

  private:
    std::uint64_t first_ns() const;

    trace::SampledBy by_ = trace::SampledBy::nothing;
    int timer_ = 0;  ///< the kernel's number of it
    int event_ = -1;
    bool is_first_ = true;
    pid_t thread_id_ = 0;
    std::int64_t last_ns_ = 0;      ///< CLOCK_MONOTONIC at the last signal
    std::uint64_t counted_ns_ = 0;  ///< CPU time that signals have stood for
    std::uint64_t period_ns_ = 0;
};

}  // namespace palmette::record

#endif
