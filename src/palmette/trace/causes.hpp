// Why a job took as long: the path that determined its end, and which computation or call made others wait.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/trace/late.hpp"
#include "palmette/trace/replay.hpp"

namespace palmette::trace {

/// Time on the path that determined when the job ended.
struct OnPath {
    std::uint32_t function = 0, path = 0;  ///< call site; 0, 0 and no calls: after the last call
    std::int32_t process = 0;
    std::uint64_t calls = 0;
    double in_call_s = 0;
    double before_s = 0;  ///< computation before the calls, since the previous call
};

/// A stretch of the critical path on one process.
struct Stretch {
    std::int32_t process = 0;
    std::int64_t begin_ns = 0, end_ns = 0;
};

struct CriticalPath {
    std::vector<OnPath> rows;        ///< their seconds add up to the time of the process that ended last
    std::vector<Stretch> stretches;  ///< in order of time
};

/// Follows the job backwards from its end, always on the rank that was waited for. Cost: O(calls on the path).
CriticalPath critical_path(const Trace& trace, const WaitGraph& awaited);

/// What made others wait: a call, or the computation before it.
struct Delay {
    std::uint32_t function = 0, path = 0;
    std::int32_t process = 0;
    bool in_call = false;
    double delayed_s = 0;     ///< longer than the ranks that waited
    double short_term_s = 0;  ///< waiting that it caused at once
    double long_term_s = 0;   ///< waiting that this waiting caused
    double removable_s = 0;   ///< by so much less nobody would have waited for it at once
};

struct Delays {
    std::vector<Delay> rows;      ///< delays, the costliest first
    double waiting_s = 0;         ///< all waiting
    double short_term_s = 0;      ///< all that was given a cause: with what propagates and `unexplained_s`, all waiting
    double unexplained_s = 0;     ///< waiting for which no delay is found
    std::vector<LateWork> works;  ///< what late ranks did, by samples; none where there are none
};

/// Delay costs: Boehme, Geimer, Arnold, Voigtlaender, Wolf: Identifying the Root Causes of Wait States in Large-Scale
/// Parallel Applications, ACM TOPC 3(2), 2016. Cost: O(calls + waits log waits) time; memory O(waits).
Delays delay_costs(const Trace& trace, const WaitGraph& awaited);

/// What the job would take without the removable part of a delay. Cost: as replay.
double time_without(const Trace& trace, const Delay& delay);

}  // namespace palmette::trace
