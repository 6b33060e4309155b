#include "palmette/record/kernel_account.hpp"

#if defined(PALMETTE_ABI_SMPI)

namespace palmette::record {

// Simulated ranks share a thread.
bool KernelAccount::open() { return false; }
void KernelAccount::close() {}
std::optional<AccountReading> KernelAccount::read() const { return std::nullopt; }
bool KernelAccount::is_own() const { return false; }

}  // namespace palmette::record

#else

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>

namespace palmette::record {

bool KernelAccount::open() {
    // /proc/PID/task/TID/schedstat: time on a processor and on its queue, in nanoseconds, and turns
    // (Documentation/scheduler/sched-stats.rst of the kernel).
    file_ = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (file_ < 0) return false;
    struct stat status{};
    if (fstat(file_, &status) != 0) return false;
    device_ = status.st_dev;
    inode_ = status.st_ino;
    const std::optional<AccountReading> found = read();
    if (found && found->ran_ns > 0) return true;
    close();
    return false;
}

bool KernelAccount::is_own() const {
    struct stat status{};
    return file_ >= 0 && fstat(file_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

void KernelAccount::close() {
    if (is_own()) ::close(file_);
    file_ = -1;
}

std::optional<AccountReading> KernelAccount::read() const {
    std::array<char, 96> text;
    const ssize_t bytes = pread(file_, text.data(), text.size(), 0);
    if (bytes <= 0) return std::nullopt;
    AccountReading out;
    const char* const end = text.data() + bytes;
    const auto ran = std::from_chars(text.data(), end, out.ran_ns);
    if (ran.ec != std::errc{} || ran.ptr == end || *ran.ptr != ' ') return std::nullopt;
    const auto waited = std::from_chars(ran.ptr + 1, end, out.waited_ns);
    if (waited.ec != std::errc{} || waited.ptr == end || *waited.ptr != ' ') return std::nullopt;
    rusage usage{};
    if (getrusage(RUSAGE_THREAD, &usage) != 0) return std::nullopt;
    out.io = static_cast<std::uint64_t>(usage.ru_majflt + usage.ru_inblock + usage.ru_oublock);
    return out;
}

}  // namespace palmette::record

#endif
