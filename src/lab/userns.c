/* palmette-lab-userns OWN|NEW DIRECTORY COMMAND [ARGUMENT...]
 *
 * Runs COMMAND in PID, network and mount namespaces of its own, where all that a lab needs is allowed: NEW makes it
 * root of a new user namespace first, OWN keeps the caller's (who is root, and learns whether that is enough here).
 * DIRECTORY is an empty tmpfs for COMMAND; /proc and /sys are those of the new namespaces.
 *
 *     this process ── init of the PID namespace ── COMMAND
 *
 * The init ends with this process or with COMMAND, however that ends, and the kernel then ends all other processes in
 * the namespace; mounts and links vanish with the last of them. Signals are passed on, the exit status is COMMAND's. A
 * refusal is one line on standard error, "palmette-lab-userns: STEP: ERROR", and exit status 125. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "inside.h"

enum { exit_usage = 2, exit_refused = 125 };

static volatile pid_t child;

static void refuse(const char *step) {
    fprintf(stderr, "palmette-lab-userns: %s: %s\n", step, strerror(errno));
    _exit(exit_refused);
}

/* A terminal's signals reach COMMAND without help, for it is in the same process group. */
static void pass_on(int number, siginfo_t *from, void *context) {
    (void)context;
    if (from->si_code <= 0 && child > 0) kill(child, number);
}

static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
static sigset_t callers_mask;

/* Until there is a child to pass them on to: the kernel drops what an init has no handler for. */
static void hold_signals(void) {
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof passed / sizeof *passed; ++i) sigaddset(&held, passed[i]);
    sigprocmask(SIG_BLOCK, &held, &callers_mask);
}

/* Children ignore what their parent ignored, so handlers come after the fork. */
static int wait_and_pass_on(void) {
    struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
    for (size_t i = 0; i < sizeof passed / sizeof *passed; ++i) sigaction(passed[i], &action, NULL);
    sigprocmask(SIG_SETMASK, &callers_mask, NULL);
    return wait_for(child);
}

static void write_to(const char *path, const char *text) {
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, strlen(text)) < 0) refuse(path);
    close(file);
}

/* One step after the other, so that the error says which was refused: policies often allow the first one only. */
static void become_root(void) {
    const unsigned user = geteuid(), group = getegid();
    char map[32];
    if (unshare(CLONE_NEWUSER) < 0) refuse("user namespace");
    write_to("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "0 %u 1", user);
    write_to("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "0 %u 1", group);
    write_to("/proc/self/gid_map", map);
}

static void mount_own(const char *directory) {
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) refuse("private mounts");
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) refuse("mount /proc");
    if (mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) refuse("mount /sys");
    if (mount("tmpfs", directory, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0) refuse("mount tmpfs");
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: palmette-lab-userns OWN|NEW DIRECTORY COMMAND [ARGUMENT...]\n");
        return exit_usage;
    }
    if (strcmp(argv[1], "NEW") == 0) become_root();
    if (unshare(CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS) < 0) refuse("namespaces");
    hold_signals();
    child = fork_bound_to_me();
    if (child < 0) refuse("fork");
    if (child > 0) return wait_and_pass_on();
    mount_own(argv[2]);
    child = fork_bound_to_me();
    if (child < 0) refuse("fork");
    if (child > 0) return wait_and_pass_on();
    sigprocmask(SIG_SETMASK, &callers_mask, NULL);
    execvp(argv[3], argv + 3);
    fprintf(stderr, "palmette-lab-userns: cannot run %s: %s\n", argv[3], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}
