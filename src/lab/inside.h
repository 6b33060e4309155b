/* Entering the namespaces of a lab's process, and waiting for what runs there. */
#ifndef PALMETTE_LAB_INSIDE_H
#define PALMETTE_LAB_INSIDE_H

#include <sys/types.h>

/* Moves the caller into all namespaces of TARGET (for the PID namespace: its future children), keeping the working
 * directory where it exists there. Returns 0, or -1 with errno. */
int enter_namespaces(pid_t target);

/* fork() whose child is killed when the caller's thread ends: nothing outlives its launcher. */
pid_t fork_bound_to_me(void);

/* Waits for CHILD; returns its exit status as a shell would say it (128 + signal). Also reaps other children. */
int wait_for(pid_t child);

#endif
