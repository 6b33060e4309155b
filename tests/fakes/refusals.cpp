// Preloaded before palmette: the system calls by which ranks share memory or reach a daemon fail at random for
// palmette, at each rank and time anew, as they do where a limit, a container or a security module forbids them. The
// program and its MPI get what they ask for.
//
//     REFUSALS=SEED,PERCENT    of these calls; the rank is added to the seed
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>

namespace {

struct Setting {
    unsigned seed = 0, percent = 0;
    Setting() {
        const char* const text = std::getenv("REFUSALS");
        if (!text) return;
        char* end = nullptr;
        seed = static_cast<unsigned>(std::strtoul(text, &end, 10)) * 1000;
        if (end && *end == ',') percent = static_cast<unsigned>(std::strtoul(end + 1, nullptr, 10));
        for (const char* name : {"PMI_RANK", "OMPI_COMM_WORLD_RANK"})
            if (const char* const rank = std::getenv(name)) seed += static_cast<unsigned>(std::atoi(rank));
    }
};

bool is_palmettes(const void* caller) {
    Dl_info info;
    return dladdr(caller, &info) != 0 && info.dli_fname && std::strstr(info.dli_fname, "libpalmette");
}

bool refused(const void* caller) {
    static const Setting setting;
    thread_local std::mt19937 random(setting.seed);
    return setting.percent > 0 && is_palmettes(caller) && random() % 100 < setting.percent;
}

template <class Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int memfd_create(const char* name, unsigned flags) noexcept {
    static auto* const real = next<int(const char*, unsigned)>("memfd_create");
    if (!refused(__builtin_return_address(0))) return real(name, flags);
    errno = EMFILE;
    return -1;
}

int shm_open(const char* name, int flags, mode_t mode) {
    static auto* const real = next<int(const char*, int, mode_t)>("shm_open");
    if (!refused(__builtin_return_address(0))) return real(name, flags, mode);
    errno = EACCES;
    return -1;
}

void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
    static auto* const real = next<void*(void*, std::size_t, int, int, int, off_t)>("mmap");
    if ((flags & MAP_SHARED) == 0 || file < 0 || !refused(__builtin_return_address(0)))
        return real(address, bytes, protection, flags, file, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

ssize_t process_vm_readv(pid_t process, const iovec* to, unsigned long to_count, const iovec* from,
                         unsigned long from_count, unsigned long flags) noexcept {
    static auto* const real =
        next<ssize_t(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long)>(
            "process_vm_readv");
    if (!refused(__builtin_return_address(0))) return real(process, to, to_count, from, from_count, flags);
    errno = EPERM;
    return -1;
}

int connect(int socket, const sockaddr* address, socklen_t length) {
    static auto* const real = next<int(int, const sockaddr*, socklen_t)>("connect");
    // Ranks find each other by the names of sockets on their node, which exist for all of them or for none.
    if (address->sa_family == AF_UNIX || !refused(__builtin_return_address(0))) return real(socket, address, length);
    errno = ECONNREFUSED;
    return -1;
}

}  // extern "C"
#pragma GCC visibility pop
