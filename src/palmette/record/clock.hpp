// The clock that times calls: the processor's time-stamp counter where it is invariant, else CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <ctime>

namespace palmette::record {

inline std::int64_t nanoseconds(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

#if defined(__x86_64__) && !defined(PALMETTE_ABI_SMPI)
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

}  // namespace palmette::record
