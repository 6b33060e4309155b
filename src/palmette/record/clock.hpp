// The clock that times calls: the processor's time-stamp counter where it is invariant and the kernel trusts it, else
// CLOCK_MONOTONIC; simulated time in a simulated program.
#pragma once

#if defined(PALMETTE_ABI_SMPI)
#include <mpi.h>
#endif

#include <cmath>
#include <cstdint>
#include <ctime>

namespace palmette::record {

inline std::int64_t nanoseconds(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

#if defined(PALMETTE_ABI_SMPI)
inline constexpr bool ticks_are_tsc = false;
inline void choose_clock() {}
inline bool counter_is_trusted() { return true; }
inline std::uint64_t now() { return static_cast<std::uint64_t>(std::llround(PMPI_Wtime() * 1e9)); }
inline std::int64_t monotonic_now_ns() { return static_cast<std::int64_t>(now()); }
#else
inline std::int64_t monotonic_now_ns() { return nanoseconds(CLOCK_MONOTONIC); }
#if defined(__x86_64__)
/// Decided by `choose_clock`: an invariant counter goes on in every power state, alike on all cores.
extern bool ticks_are_tsc;
/// Once, before anything is recorded.
void choose_clock();
/// Whether the processor has such a counter, this process may read it, and the kernel hasn't found that it goes wrong.
bool counter_is_trusted();
inline std::uint64_t now() {
    if (ticks_are_tsc) [[likely]]
        return __builtin_ia32_rdtsc();
    return static_cast<std::uint64_t>(nanoseconds(CLOCK_MONOTONIC));
}
#else
inline constexpr bool ticks_are_tsc = false;
inline void choose_clock() {}
inline bool counter_is_trusted() { return true; }
inline std::uint64_t now() { return static_cast<std::uint64_t>(nanoseconds(CLOCK_MONOTONIC)); }
#endif
#endif

/// What is added to CLOCK_MONOTONIC for this node's time, by which recordings of several nodes are compared: the time
/// of day as it would have gone on from the process's start, whoever sets the clock meanwhile. Made before anything is
/// recorded; tests pretend that nodes' clocks differ (PALMETTE_FAKE_CLOCKS: nanoseconds by rank).
extern std::int64_t node_offset_ns;
inline std::int64_t node_now_ns() { return monotonic_now_ns() + node_offset_ns; }
/// Takes it from both clocks.
void begin_node_time();

/// One moment by both clocks.
struct BothClocks {
    std::uint64_t ticks;
    std::int64_t monotonic_ns;
};

/// A process that loses its processor between the two readings is wrong by milliseconds: the tightest of some tries
/// counts.
inline BothClocks read_both_clocks() {
    constexpr int tries = 5;
    constexpr std::uint64_t tight = 500;  ///< ticks
    BothClocks best{};
    std::uint64_t least = UINT64_MAX;
    for (int i = 0; i < tries && least > tight; ++i) {
        const std::uint64_t before = now();
        const std::int64_t monotonic_ns = monotonic_now_ns();
        const std::uint64_t width = now() - before;
        if (width >= least) continue;
        least = width;
        best = {before + width / 2, monotonic_ns};
    }
    return best;
}

}  // namespace palmette::record
