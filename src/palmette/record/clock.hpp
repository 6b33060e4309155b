// The clock that times calls: the processor's time-stamp counter where it is invariant, else CLOCK_MONOTONIC; simulated
// time in a simulated program.
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
inline std::uint64_t now() { return static_cast<std::uint64_t>(std::llround(PMPI_Wtime() * 1e9)); }
inline std::int64_t real_now_ns() { return static_cast<std::int64_t>(now()); }
#else
/// Tests pretend that nodes' clocks differ (PALMETTE_FAKE_CLOCKS: nanoseconds by rank).
extern std::int64_t clock_shift_ns;
/// Of the node's clock, by which recordings of several nodes are compared.
inline std::int64_t real_now_ns() { return nanoseconds(CLOCK_REALTIME) + clock_shift_ns; }
#if defined(__x86_64__)
/// Decided once, before anything is recorded: an invariant counter goes on in every power state, alike on all cores.
extern bool ticks_are_tsc;
inline std::uint64_t now() {
    if (ticks_are_tsc) [[likely]]
        return __builtin_ia32_rdtsc();
    return static_cast<std::uint64_t>(nanoseconds(CLOCK_MONOTONIC));
}
#else
inline constexpr bool ticks_are_tsc = false;
inline std::uint64_t now() { return static_cast<std::uint64_t>(nanoseconds(CLOCK_MONOTONIC)); }
#endif
#endif

/// The same moment by both clocks.
struct BothClocks {
    std::uint64_t ticks;
    std::int64_t real_ns;
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
        const std::int64_t real_ns = real_now_ns();
        const std::uint64_t width = now() - before;
        if (width >= least) continue;
        least = width;
        best = {before + width / 2, real_ns};
    }
    return best;
}

}  // namespace palmette::record
