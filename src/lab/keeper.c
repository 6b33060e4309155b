/* palmette-lab-keeper LIFETIME_S DIRECTORY LOGIN HOST...
 *
 * Makes the namespaces of an emulated cluster and keeps them. One PID namespace holds the whole lab; its init, the
 * keeper, is also the login host, in whose network namespace the switches live. Every HOST is a child with namespaces
 * of its own (net, uts, ipc, mnt and a nested pid one). So the kernel itself takes everything down when the keeper
 * ends, however it ends:
 *
 *   - LIFETIME_S seconds have passed,
 *   - standard input reached its end before a byte "k" (keep) came: the process that asked for the lab is gone,
 *   - it is killed.
 *
 * DIRECTORY holds `etc_hosts` and, for each host, `boot_id.HOST`. Standard output gets "keeper PID" (as seen by the
 * caller), a line "host NAME PID" for each host (PID as seen by the keeper), and "ready". A failure is one line on
 * standard error and exit status 1; exit status 3 says that the kernel refused the namespaces. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mounts.h"

enum { exit_failed = 1, exit_usage = 2, exit_refused = 3 };

static const int all_namespaces = CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNS;

static void fail(const char *what, int status) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    _exit(status);
}

/* fork() whose child starts in new namespaces; the caller stays in its own. */
static pid_t fork_into_new_namespaces(void) { return (pid_t)syscall(SYS_clone, all_namespaces | SIGCHLD, 0, 0, 0, 0); }

/* Sets up the calling process, alone in new namespaces, as a host: name, mounts and boot id. */
static void become_host(const char *name, const char *directory) {
    char path[4096];
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) fail("cannot make mounts private", exit_refused);
    if (sethostname(name, strlen(name)) < 0) fail("cannot set the host name", exit_refused);
    const char *step = mount_private_directories();
    if (step) fail(step, exit_refused);
    if (mount("sysfs", "/sys", "sysfs", 0, NULL) < 0) fail("cannot mount /sys", exit_refused);
    snprintf(path, sizeof path, "%s/etc_hosts", directory);
    if (mount(path, "/etc/hosts", NULL, MS_BIND, NULL) < 0) fail("cannot bind /etc/hosts", exit_failed);
    snprintf(path, sizeof path, "%s/boot_id.%s", directory, name);
    /* Some libraries assume that two processes with the same boot id share memory. */
    if (access(path, R_OK) == 0 && mount(path, boot_id_path, NULL, MS_BIND, NULL) < 0)
        fail("cannot bind the boot id", exit_failed);
}

static void detach_standard_streams(void) {
    const int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
    if (null > 2) close(null);
}

/* Main loop of a host's init: reaps children until the keeper ends. */
static void idle_as_host(void) {
    detach_standard_streams();
    signal(SIGCHLD, SIG_IGN);
    for (;;) pause();
}

/* Starts HOST and returns its PID when it is set up. */
static pid_t start_host(const char *name, const char *directory) {
    int ready[2];
    char byte = 0;
    if (pipe2(ready, O_CLOEXEC) < 0) fail("pipe", exit_failed);
    const pid_t child = fork_into_new_namespaces();
    if (child < 0) fail("cannot create a host's namespaces", exit_refused);
    if (child == 0) {
        close(ready[0]);
        become_host(name, directory);
        if (write(ready[1], "r", 1) != 1) _exit(exit_failed);
        close(ready[1]);
        idle_as_host();
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1) { /* the child has reported why */
        int status = 0;
        waitpid(child, &status, 0);
        _exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : exit_failed);
    }
    close(ready[0]);
    return child;
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t); /* includes suspended time: a lifetime is wall-clock time */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Waits for the end of the lifetime, or of standard input without a "k" before it. */
static void keep(double lifetime_s) {
    const double end = seconds_now() + lifetime_s;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    for (double left = lifetime_s; left > 0; left = end - seconds_now()) {
        /* The upper bound keeps the product below INT_MAX; the loop repeats. */
        const int wait_ms = (int)((left < 3600 ? left : 3600) * 1e3) + 1;
        if (poll(&input, 1, wait_ms) <= 0) continue;
        char byte = 0;
        if (read(STDIN_FILENO, &byte, 1) != 1) return;
        if (byte == 'k') {
            detach_standard_streams();
            input.fd = -1;
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: palmette-lab-keeper LIFETIME_S DIRECTORY LOGIN HOST...\n");
        return exit_usage;
    }
    const double lifetime_s = atof(argv[1]);
    const char *directory = argv[2];
    const pid_t keeper = fork_into_new_namespaces();
    if (keeper < 0) fail("cannot create namespaces", exit_refused);
    if (keeper > 0) {
        /* Only this side knows the keeper's PID as the caller sees it. The keeper holds the streams from here on. */
        dprintf(STDOUT_FILENO, "keeper %d\n", (int)keeper);
        return 0;
    }
    setsid();
    become_host(argv[3], directory);
    for (int i = 4; i < argc; ++i) {
        const pid_t host = start_host(argv[i], directory);
        dprintf(STDOUT_FILENO, "host %s %d\n", argv[i], (int)host);
    }
    dprintf(STDOUT_FILENO, "ready\n");
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    signal(SIGCHLD, SIG_IGN);
    keep(lifetime_s);
    return 0;
}
