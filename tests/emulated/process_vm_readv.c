// process_vm_readv in a program under qemu-user, which has none: through /proc/PID/mem. Preloaded into it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

__attribute__((visibility("default"))) ssize_t process_vm_readv(pid_t process, const struct iovec *local,
                                                                unsigned long locals, const struct iovec *remote,
                                                                unsigned long remotes, unsigned long flags) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)process);
    const int memory = flags == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (memory < 0) {
        errno = flags != 0 ? EINVAL : errno == ENOENT ? ESRCH : EPERM;
        return -1;
    }
    ssize_t done = 0;
    size_t filled = 0, read = 0;  // bytes of the pieces at hand
    while (locals > 0 && remotes > 0) {
        const size_t room = local->iov_len - filled, rest = remote->iov_len - read;
        const size_t part = room < rest ? room : rest;
        const ssize_t got =
            pread(memory, (char *)local->iov_base + filled, part, (off_t)((char *)remote->iov_base + read));
        if (got < 0 && done == 0) done = -1;
        if (got < 0) break;
        done += got;
        if ((size_t)got < part) break;
        filled += part;
        read += part;
        if (filled == local->iov_len) ++local, --locals, filled = 0;
        if (read == remote->iov_len) ++remote, --remotes, read = 0;
    }
    close(memory);
    if (done < 0) errno = EFAULT;
    return done;
}
