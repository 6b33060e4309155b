// When ranks come to their calls, in steps that all of them take: as planned, so that it is known who waits for whom.
//
// In a simulated program it is the planned nanosecond. On this machine a rank may come later than planned, but never
// before those that are planned to come before it have said, in a file that all map, that they are about to call; it
// then sleeps for the planned difference. So a busy machine doesn't change who is the late one.
#pragma once

#include <mpi.h>

#include <array>

#if defined(PALMETTE_ABI_SMPI)
#include <cmath>
#include <ctime>
#else
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#endif

namespace planted {

inline constexpr int ranks = 4;
inline constexpr int rounds = 4;  ///< of each scenario

inline int rank = 0;
inline double factor = 1;  ///< of all times

/// By rank, in milliseconds from the step's begin.
using Times = std::array<double, ranks>;

#if defined(PALMETTE_ABI_SMPI)

/// So far apart that the calls of a step end before the next one begins.
inline constexpr double step_s = 0.1;
inline int steps = 0;

inline bool open_timetable(const char* /*file*/) { return true; }

inline void sleep_for(double seconds) {
    const long long ns = std::llround(seconds * 1e9);
    if (ns <= 0) return;
    const timespec length = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    nanosleep(&length, nullptr);
}

inline void come(const Times& at_ms) {
    ++steps;
    sleep_for(steps * step_s + factor * at_ms[static_cast<std::size_t>(rank)] * 1e-3 - PMPI_Wtime());
}

inline void compute(double ms) { smpi_execute_flops(factor * ms * 1e-3 * 10e9); }  // of hosts with 10 Gflop/s

#else

/// How many steps a rank has begun, and before how many calls it was.
struct Progress {
    std::atomic<int> begun, there;
};
inline Progress* progress = nullptr;
inline int steps = 0;

inline bool open_timetable(const char* file) {
    const int opened = open(file, O_RDWR | O_CREAT, 0644);
    if (opened < 0 || ftruncate(opened, 4096) != 0) return false;
    void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
    close(opened);
    if (memory == MAP_FAILED) return false;
    progress = static_cast<Progress*>(memory);
    return true;
}

inline void until(const std::atomic<int>& counter, int least) {
    while (counter.load() < least) sched_yield();
}

/// Returns before this step's call. None begins before all ranks are in the step.
inline void come(const Times& at_ms) {
    ++steps;
    progress[rank].begun = steps;
    for (int r = 0; r < ranks; ++r) until(progress[r].begun, steps);
    const double own_ms = at_ms[static_cast<std::size_t>(rank)];
    double before_ms = -1;
    for (int r = 0; r < ranks; ++r) {
        const double other_ms = at_ms[static_cast<std::size_t>(r)];
        if (other_ms >= own_ms) continue;
        until(progress[r].there, steps);
        before_ms = std::max(before_ms, other_ms);
    }
    if (before_ms >= 0) usleep(static_cast<useconds_t>(factor * (own_ms - before_ms) * 1e3));
    progress[rank].there = steps;
}

/// Keeps the processor busy, as far as others leave it.
inline void compute(double ms) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double, std::milli>(factor * ms);
    while (std::chrono::steady_clock::now() < end) {
    }
}

#endif

inline void come_together() { come({0, 0, 0, 0}); }

}  // namespace planted
