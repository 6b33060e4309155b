/* palmette-lab-rsh [OPTIONS] HOST COMMAND...
 *
 * Replaces ssh inside a lab: runs COMMAND (joined by blanks, read by /bin/sh, as ssh does) on HOST, which is a name or
 * an address of the table that PALMETTE_LAB_TABLE names (lines "ADDRESS NAME PID"; PID as the login host sees it).
 *
 * Each call is a container of its own on the host, a nested PID namespace with its own /proc and /dev/shm: when this
 * process ends, for whatever reason, everything that it started on the host is gone, daemons included.
 *
 *     this process ── on the host's PIDs ── init of the call ── /bin/sh -c COMMAND
 *
 * Two forks stand between, since a process may not make a PID namespace below one that it has entered but isn't in. */
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
#include "mounts.h"

enum { exit_failed = 255 }; /* ssh's own failures */

static void fail(const char *what) {
    fprintf(stderr, "palmette-lab-rsh: %s: %s\n", what, strerror(errno));
    _exit(exit_failed);
}

/* Returns the PID of HOST's init, or -1. */
static pid_t look_up(const char *table, const char *host) {
    char address[64], name[256];
    int pid = -1;
    FILE *file = fopen(table, "re");
    if (file == NULL) return -1;
    while (fscanf(file, "%63s %255s %d", address, name, &pid) == 3)
        if (strcmp(host, name) == 0 || strcmp(host, address) == 0) {
            fclose(file);
            return pid;
        }
    fclose(file);
    return -1;
}

/* Index of the first argument that is no option. */
static int skip_options(int argc, char **argv) {
    static const char with_value[] = "bcDEeFIiJLlmOopQRSWw"; /* ssh's options that take a value */
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; ++i)
        if (argv[i][1] != '\0' && argv[i][2] == '\0' && strchr(with_value, argv[i][1])) ++i;
    return i;
}

static char *join(char **words, int count) {
    size_t size = 1;
    for (int i = 0; i < count; ++i) size += strlen(words[i]) + 1;
    char *text = calloc(1, size);
    if (text == NULL) fail("no memory");
    for (int i = 0; i < count; ++i) {
        if (i > 0) strcat(text, " ");
        strcat(text, words[i]);
    }
    return text;
}

/* Init of the call: the host's view, restricted to the PIDs of this call. */
static int run_contained(const char *command) {
    /* The host's boot id lies under the /proc that the next mount covers. */
    const int boot_id = open(boot_id_path, O_PATH | O_CLOEXEC);
    char bound[64];
    const char *step = mount_private_directories();
    if (step) fail(step);
    snprintf(bound, sizeof bound, "/proc/self/fd/%d", boot_id);
    if (mount(bound, boot_id_path, NULL, MS_BIND, NULL) < 0) fail("cannot bind the boot id");
    setenv("TMPDIR", host_tmpdir, 1);
    unsetenv("PALMETTE_LAB_TABLE"); /* of no use here: a host can't see the PIDs of the others */
    const pid_t shell = fork();
    if (shell < 0) fail("fork");
    if (shell == 0) {
        setsid();
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        fail("cannot run /bin/sh");
    }
    return wait_for(shell);
}

static int run_on_host(const char *command) {
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0) fail("cannot create a run's namespaces");
    const pid_t init = fork_bound_to_me();
    if (init < 0) fail("fork");
    if (init == 0) _exit(run_contained(command));
    return wait_for(init);
}

int main(int argc, char **argv) {
    const char *table = getenv("PALMETTE_LAB_TABLE");
    const int first = skip_options(argc, argv);
    if (table == NULL || first + 1 >= argc) {
        fprintf(stderr, "usage: PALMETTE_LAB_TABLE=FILE palmette-lab-rsh [OPTIONS] HOST COMMAND...\n");
        return exit_failed;
    }
    const char *at = strchr(argv[first], '@');
    const char *host = at ? at + 1 : argv[first];
    const pid_t target = look_up(table, host);
    if (target < 0) {
        fprintf(stderr, "palmette-lab-rsh: no host %s in %s\n", host, table);
        return exit_failed;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (enter_namespaces(target) < 0) fail("cannot enter the host");
    const char *command = join(argv + first + 1, argc - first - 1);
    const pid_t child = fork_bound_to_me();
    if (child < 0) fail("fork");
    if (child == 0) _exit(run_on_host(command));
    return wait_for(child);
}
