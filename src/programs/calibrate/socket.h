/* The socket that a rank is bound to. */
#ifndef CALIBRATE_SOCKET_H
#define CALIBRATE_SOCKET_H

#include <sched.h>
#include <stdio.h>

static int socket_of_cpu(int cpu) {
    char path[96];
    int socket = -1;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
    FILE* file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "%d", &socket) != 1) socket = -1;
        fclose(file);
    }
    return socket;
}

/* The number of the one socket that holds all processors this process may run on, or -1. */
static int bound_socket(void) {
    cpu_set_t allowed;
    int found = -1;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        const int socket = socket_of_cpu(cpu);
        if (socket < 0 || (found >= 0 && socket != found)) return -1;
        found = socket;
    }
    return found;
}

#endif
