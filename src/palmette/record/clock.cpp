#include "palmette/record/clock.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace palmette::record {

std::int64_t node_offset_ns = 0;

void begin_node_time() {
#if !defined(PALMETTE_ABI_SMPI)
    constexpr int tries = 5;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (int i = 0; i < tries; ++i) {
        const std::int64_t before = monotonic_now_ns();
        const std::int64_t real_ns = nanoseconds(CLOCK_REALTIME);
        const std::int64_t width = monotonic_now_ns() - before;
        if (width >= least) continue;
        least = width;
        node_offset_ns = real_ns - (before + width / 2);
    }
#endif
}

#if defined(__x86_64__) && !defined(PALMETTE_ABI_SMPI)
bool ticks_are_tsc = false;

namespace {

bool has_invariant_counter() {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid(0x80000007U, &a, &b, &c, &d) != 0 && (d & (1U << 8U)) != 0;
}

/// A sandbox may let a process that reads it end by a signal.
bool may_read_counter() {
    int mode = PR_TSC_SIGSEGV;
    return prctl(PR_GET_TSC, &mode) == 0 && mode == PR_TSC_ENABLE;
}

/// The kernel takes a clock that goes wrong out of the list of those that it would use.
bool kernel_would_use_counter() {
    const int file = ::open("/sys/devices/system/clocksource/clocksource0/available_clocksource", O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    std::array<char, 256> text{};
    const ssize_t bytes = ::read(file, text.data(), text.size() - 1);
    ::close(file);
    std::string_view left(text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    while (!left.empty()) {
        const std::size_t end = std::min(left.find_first_of(" \n"), left.size());
        if (left.substr(0, end) == "tsc") return true;
        left.remove_prefix(std::min(end + 1, left.size()));
    }
    return false;
}

}  // namespace

bool counter_is_trusted() { return has_invariant_counter() && may_read_counter() && kernel_would_use_counter(); }

void choose_clock() { ticks_are_tsc = counter_is_trusted(); }
#endif

}  // namespace palmette::record
