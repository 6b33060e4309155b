/* palmette-lab-enter PID COMMAND [ARGUMENT...]
 *
 * Runs COMMAND in the namespaces of PID (a lab's keeper), passes signals on to it and returns its exit status. COMMAND
 * is killed when this process is, and this process when its parent is: a launcher started in a lab can't outlive its
 * requester. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "inside.h"

static volatile pid_t command_pid;

static void pass_on(int number) {
    if (command_pid > 0) kill(command_pid, number);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: palmette-lab-enter PID COMMAND [ARGUMENT...]\n");
        return 2;
    }
    static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (enter_namespaces((pid_t)atoi(argv[1])) < 0) {
        fprintf(stderr, "palmette-lab-enter: cannot enter the lab of process %s: %s\n", argv[1], strerror(errno));
        return 255;
    }
    command_pid = fork_bound_to_me();
    if (command_pid < 0) {
        perror("palmette-lab-enter: fork");
        return 255;
    }
    if (command_pid == 0) {
        execvp(argv[2], argv + 2);
        fprintf(stderr, "palmette-lab-enter: cannot run %s: %s\n", argv[2], strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
    }
    /* Children ignore what their parent ignored, so handlers come after the fork. */
    for (size_t i = 0; i < sizeof passed / sizeof *passed; ++i) signal(passed[i], pass_on);
    return wait_for(command_pid);
}
