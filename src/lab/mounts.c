#include "mounts.h"

#include <stddef.h>
#include <sys/mount.h>
#include <sys/stat.h>

const char *const boot_id_path = "/proc/sys/kernel/random/boot_id";
const char *const host_tmpdir = "/dev/shm/tmp";

const char *mount_private_directories(void) {
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) return "cannot mount /proc";
    if (mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0) return "cannot mount /dev/shm";
    /* Launchers name session directories after PIDs, which repeat from one PID namespace to the next. */
    if (mkdir(host_tmpdir, 0777) < 0) return "cannot make the temporary directory";
    return NULL;
}
