#define _GNU_SOURCE
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int enter_namespaces(pid_t target) {
    char directory[PATH_MAX];
    const char *here = getcwd(directory, sizeof directory);
    const int process = (int)syscall(SYS_pidfd_open, target, 0);
    if (process < 0) return -1;
    /* One call for all of them, so that no half-entered state is possible (Linux 5.8). */
    const int result = setns(process, CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNS);
    const int error = errno;
    close(process);
    /* Entering a mount namespace moves to its root; a directory that isn't there is no reason to stop, as with ssh. */
    if (result == 0 && (here == NULL || chdir(here) < 0) && chdir("/") < 0) return -1;
    errno = error;
    return result;
}

pid_t fork_bound_to_me(void) {
    int alive[2];
    if (pipe2(alive, O_CLOEXEC) < 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
        close(alive[1]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* A parent that ended before that sends no signal. The init of a PID namespace can't ask for it by number. */
        struct pollfd parent = {.fd = alive[0], .events = POLLIN};
        if (poll(&parent, 1, 0) != 0) _exit(255);
    }
    if (child < 0) close(alive[1]);
    close(alive[0]); /* the other end stays open as long as this process */
    return child;
}

int wait_for(pid_t child) {
    for (;;) {
        int status = 0;
        const pid_t dead = waitpid(-1, &status, 0);
        if (dead < 0 && errno == EINTR) continue;
        if (dead < 0) return 255;
        if (dead != child) continue;
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}
