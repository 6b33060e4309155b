#include "palmette/base/readable.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace palmette::base {

bool is_readable(std::uintptr_t address) {
    // The kernel copies the set before it looks at what to do with it: EFAULT, or EINVAL since there is no such action.
    constexpr int no_action = -1;
    constexpr std::size_t set_bytes = 8;
    const int kept = errno;
    const long code = syscall(SYS_rt_sigprocmask, no_action, address, nullptr, set_bytes);
    const bool readable = code != 0 && errno == EINVAL;
    errno = kept;
    return readable;
}

bool is_readable(std::uintptr_t address, std::size_t bytes) {
    if (bytes == 0) return true;
    const std::uintptr_t last = address + bytes - 1;
    if (last < address) return false;
    for (std::uintptr_t page = address & ~(memory_page - 1);; page += memory_page) {
        if (!is_readable(page)) return false;
        if (page >= (last & ~(memory_page - 1))) return true;
    }
}

bool ReadablePages::has(std::uintptr_t address, std::size_t bytes) {
    if (bytes == 0) return true;
    const std::uintptr_t last = (address + bytes - 1) & ~(memory_page - 1);
    std::uintptr_t page = address & ~(memory_page - 1);
    if (last < page || page == 0) return false;
    for (; page <= last; page += memory_page) {
        std::uintptr_t& known = pages_[page / memory_page % slots];
        if (known == page) continue;
        if (!is_readable(page)) return false;
        known = page;
    }
    return true;
}

}  // namespace palmette::base
