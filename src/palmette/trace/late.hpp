// What late ranks did, by samples of their stacks, beside what those that waited for them did in the same intervals.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "palmette/trace/replay.hpp"

namespace palmette::trace {

/// A stretch of a thread's time outside of MPI, from the end of one call to the begin of the next.
struct Gap {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint32_t before_function = 0, before_path = 0;  ///< call that ended before the stretch
    std::uint32_t after_function = 0, after_path = 0;    ///< call that follows the stretch
};

/// Time outside of MPI between calls of two places. Of `other`: the mean over those that waited for the same call, by
/// how long they waited.
struct GapTime {
    std::uint32_t before_function = 0, before_path = 0, after_function = 0, after_path = 0;
    double late_s = 0, late_cpu_s = 0, other_s = 0, other_cpu_s = 0;  ///< cpu: of it, on a processor, by samples
    OffProcessor late_off, other_off;  ///< the stretches' time off the processor, by the kernel's account
};

/// Processor time in a calling context outside of MPI.
struct ContextTime {
    std::uint32_t context = 0;  ///< index into Trace::contexts.nodes
    double late_s = 0, other_s = 0;
};

/// What a late rank did, in all intervals from when it last met with those that waited for it until it came.
struct LateWork {
    std::uint32_t function = 0, path = 0;  ///< call site that waited for the late rank
    std::int32_t process = 0;              ///< process that came late
    std::uint64_t instances = 0;           ///< how often
    std::vector<std::int32_t> waiters;     ///< processes that waited for it
    std::vector<GapTime> gaps;
    std::vector<ContextTime> contexts;  ///< contexts of the threads that made the calls
    std::vector<ContextTime> beside;    ///< contexts of other threads of the same processes, meanwhile
};

/// Processor time of a process by samples, from `begin_ns` until `end_ns`.
struct ProcessorTime {
    double computing_s = 0;  ///< outside of MPI, of threads that make calls
    double in_calls_s = 0;   ///< threads that make calls, inside MPI
    double beside_s = 0;     ///< threads that make no calls
    OffProcessor off;        ///< outside of MPI, of threads that make calls: in long stretches between two calls
};
/// Processor times by process. Cost: O(calls + samples).
std::vector<ProcessorTime> processor_times(const Trace& trace, std::int64_t begin_ns, std::int64_t end_ns);

/// Sums it up, wait by wait: those that wait for the same call come one after the other.
class LateWorks {
  public:
    struct Side {
        const TracedThread* thread = nullptr;
        const TracedProcess* process = nullptr;
        std::int32_t number = 0;  ///< the process's number
        const std::vector<Gap>* gaps = nullptr;
        /// Where the thread's samples were looked at last, and its account: next time not far before.
        std::size_t* behind = nullptr;
        std::size_t* behind_off = nullptr;
    };

    /// `waiting`: the call that waited, for what `at` began. Cost: O(gaps + samples in them), of the late side once for
    /// each `at`.
    void add(const Event& waiting, double waited_s, const At& at, const Side& late, const Side& waiter);
    /// The works, by waiting call site and late process.
    std::vector<LateWork> take();

  private:
    using GapKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::int32_t>;
    struct Seconds {
        double wall_s = 0, cpu_s = 0;
        OffProcessor off;
    };
    struct TimeSums {
        std::map<GapKey, Seconds> gaps;
        std::unordered_map<std::uint32_t, double> contexts, beside;
        GapKey last_key{};
        Seconds* last = nullptr;  ///< entry of `last_key`, which is mostly the next one's, too
        Seconds& at(const GapKey& key) {
            if (!last || key != last_key) last = &gaps[last_key = key];
            return *last;
        }
        void clear();
    };
    struct Sums {
        TimeSums late, other;
        std::map<std::int32_t, bool> waiters;
        std::uint64_t instances = 0;
    };

    static void spend(TimeSums& out, const Side& side, double weight);
    void flush();

    /// Longer intervals are cut, as those of delay costs are.
    static constexpr std::size_t most_samples = 100'000;
    std::map<Key, Sums> sums_;
    Sums* open_ = nullptr;
    Key open_key_{};
    At open_at_;
    TimeSums others_;
    double weight_ = 0;
};

}  // namespace palmette::trace
