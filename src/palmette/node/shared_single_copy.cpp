#include "palmette/node/shared_single_copy.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace palmette::node {
namespace {

/// The kernel reads at most this much in one call (MAX_RW_COUNT, rounded down to something even).
constexpr std::int64_t most_per_call = std::int64_t{1} << 30;

}  // namespace

int read_process(pid_t process, std::uint64_t address, void* to, std::int64_t bytes) {
    auto* out = static_cast<char*>(to);
    while (bytes > 0) {
        const auto ask = static_cast<std::size_t>(std::min(bytes, most_per_call));
        const iovec local{out, ask};
        const iovec remote{reinterpret_cast<void*>(address), ask};
        const ssize_t got = process_vm_readv(process, &local, 1, &remote, 1, 0);
        if (got < 0) {
            if (errno == EINTR) continue;
            return errno;
        }
        // A read ends short before an unmapped page; the error is reported only by a read that begins at that page.
        if (got == 0) return EFAULT;
        out += got;
        address += static_cast<std::uint64_t>(got);
        bytes -= got;
    }
    return 0;
}

bool can_read_process(pid_t process, std::uint64_t address, std::uint64_t word) {
    std::uint64_t got = ~word;
    return read_process(process, address, &got, sizeof got) == 0 && got == word;
}

namespace {
std::atomic<std::int64_t> refused_from{0}, reads{0};
}

void inject_refusals_from(std::int64_t nth) { refused_from = nth; }

bool is_injected_refusal() {
    const std::int64_t from = refused_from.load(std::memory_order_relaxed);
    return from > 0 && ++reads >= from;
}

bool permit_siblings_to_read() {
    const int file = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    char scope = 0;
    const bool one = read(file, &scope, 1) == 1 && scope == '1';
    close(file);
    // Process 1 is an ancestor of all processes: an orphan would permit the whole machine.
    return one && getppid() > 1 && prctl(PR_SET_PTRACER, static_cast<unsigned long>(getppid()), 0, 0, 0) == 0;
}

}  // namespace palmette::node
