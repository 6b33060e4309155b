#include "palmette/record/sample_clock.hpp"

#if !defined(PALMETTE_ABI_SMPI)

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "palmette/record/clock.hpp"

namespace palmette::record {
namespace {

using trace::SampledBy;

constexpr std::uint64_t second_of_ns = 1'000'000'000;
/// si_code of an event's SIGTRAP, which older C libraries don't name.
constexpr int trap_of_event = 6;

timespec time_of(std::uint64_t ns) {
    timespec out{};
    out.tv_sec = static_cast<time_t>(ns / second_of_ns);
    out.tv_nsec = static_cast<long>(ns % second_of_ns);
    return out;
}

/// Out of the way of the program's files, whose numbers stay what they are without it.
int moved_up(int file) {
    constexpr int from = 512;
    const int moved = fcntl(file, F_DUPFD_CLOEXEC, from);
    if (moved < 0) return file;
    close(file);
    return moved;
}

/// -1: the kernel refuses.
int open_event([[maybe_unused]] pid_t thread_id, [[maybe_unused]] std::uint64_t first_ns) {
#if defined(PERF_ATTR_SIZE_VER7)
    perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_SOFTWARE;
    wanted.config = PERF_COUNT_SW_TASK_CLOCK;
    wanted.sample_period = first_ns;
    // Without these the signal would come in the middle of the thread's sleep that follows.
    wanted.sigtrap = 1;
    wanted.remove_on_exec = 1;
    const long file = syscall(SYS_perf_event_open, &wanted, thread_id, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return file < 0 ? -1 : moved_up(static_cast<int>(file));
#else
    return -1;
#endif
}

bool is_debugged() {
    std::FILE* const file = std::fopen("/proc/self/status", "re");
    if (!file) return false;
    char line[256];
    int debugger = 0;
    while (std::fgets(line, sizeof line, file))
        if (std::sscanf(line, "TracerPid: %d", &debugger) == 1) break;
    std::fclose(file);
    return debugger != 0;
}

}  // namespace

double most_timer_hertz() {
    timespec tick{};
    constexpr double unknown = 100;
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) != 0) return unknown;
    const double ns =
        static_cast<double>(tick.tv_sec) * static_cast<double>(second_of_ns) + static_cast<double>(tick.tv_nsec);
    return ns > 0 ? static_cast<double>(second_of_ns) / ns : unknown;
}

bool may_use_events() {
    if (is_debugged()) return false;
    const int file = open_event(0, second_of_ns);
    if (file < 0) return false;
    close(file);
    return true;
}

SampleClock::~SampleClock() {
    end();
    if (event_ >= 0) close(event_);
}

bool SampleClock::begin(SampledBy by, pthread_t thread, pid_t thread_id, int signal, std::uint64_t period_ns) {
    clockid_t clock = 0;
    if (pthread_getcpuclockid(thread, &clock) != 0) return false;
    period_ns_ = period_ns;
    thread_id_ = thread_id;
    if (by == SampledBy::thread_event) {
        counted_ns_ = static_cast<std::uint64_t>(nanoseconds(clock));
        last_ns_ = monotonic_now_ns();
        is_first_ = true;
        event_ = open_event(thread_id, first_ns());
        if (event_ < 0) return false;
        by_ = by;
        return true;
    }
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal;
    event._sigev_un._tid = thread_id;
    // The C library's own timers have numbers of their own, and aren't to be set in handlers.
    if (syscall(SYS_timer_create, clock, &event, &timer_) != 0) return false;
    by_ = by;
    set_period(period_ns);
    return true;
}

void SampleClock::end() {
    if (by_ == SampledBy::thread_cpu_timer) syscall(SYS_timer_delete, timer_);
    // Its file stays: the thread may be in its handler.
    if (by_ == SampledBy::thread_event) ioctl(event_, PERF_EVENT_IOC_DISABLE, 0);
    by_ = SampledBy::nothing;
}

void SampleClock::forget() {
    by_ = SampledBy::nothing;
    if (event_ >= 0) close(event_);
    event_ = -1;
}

/// Any time of the first period: threads that live for less than one are met as often as they should be.
std::uint64_t SampleClock::first_ns() const {
    const std::uint64_t random = (now() ^ static_cast<std::uint64_t>(thread_id_) << 32U) * 0x9E3779B97F4A7C15ULL;
    return 1 + (random >> 20U) % period_ns_;
}

void SampleClock::set_period(std::uint64_t period_ns) {
    period_ns_ = period_ns;
    itimerspec times{};
    times.it_interval = time_of(period_ns);
    times.it_value = time_of(first_ns());
    syscall(SYS_timer_settime, timer_, 0, &times, nullptr);
}

bool SampleClock::is_from(const siginfo_t& signal) const {
    return by_ == SampledBy::thread_event ? signal.si_signo == SIGTRAP && signal.si_code == trap_of_event
                                          : signal.si_code == SI_TIMER;
}

bool SampleClock::may_be_from_one(const siginfo_t& signal) {
    return signal.si_code == SI_TIMER || signal.si_code == trap_of_event;
}

std::uint64_t SampleClock::take_spent_ns(const siginfo_t& signal) {
    // A timer knows how often it has ticked.
    if (by_ != SampledBy::thread_event)
        return period_ns_ * (1 + static_cast<std::uint64_t>(std::max(signal.si_overrun, 0)));
    std::uint64_t period = period_ns_;
    if (is_first_) ioctl(event_, PERF_EVENT_IOC_PERIOD, &period);
    // While its signal waits for the thread's return from the kernel, an event's periods aren't counted. A thread's CPU
    // clock takes 2 us to be read, and isn't where no more than a period can have passed.
    const std::int64_t now_ns = monotonic_now_ns();
    const std::int64_t since_ns = now_ns - last_ns_;
    last_ns_ = now_ns;
    if (is_first_ || since_ns > static_cast<std::int64_t>(period + period / 2)) {
        const auto spent_ns = static_cast<std::uint64_t>(nanoseconds(CLOCK_THREAD_CPUTIME_ID));
        period = spent_ns > counted_ns_ ? spent_ns - counted_ns_ : 0;
    }
    is_first_ = false;
    counted_ns_ += period;
    return period;
}

}  // namespace palmette::record

#endif
