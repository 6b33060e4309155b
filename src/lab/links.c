/* palmette-lab-links SECONDS PERIOD_US LOG INTERFACE...
 *
 * Logs the byte counters of the interfaces of this network namespace every PERIOD_US microseconds. Each row of the file
 * LOG consists of 64-bit binary numbers: the time (CLOCK_MONOTONIC, a double, seconds), then for each interface in the
 * order given the bytes received and the bytes sent, frames counted.
 *
 * Prints "ready" before the first row. Ends after SECONDS or at SIGTERM, with all rows written; status 1: the counters
 * can't be read or the file can't be written. It sleeps between samples, to leave the cores to the measured ranks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1024, TEXT = 256 << 10 };

static volatile sig_atomic_t ended;

static void end(int number) {
    (void)number;
    ended = 1;
}

static double seconds_of(struct timespec t) { return (double)t.tv_sec + (double)t.tv_nsec * 1e-9; }

static int fail(const char *what) {
    fprintf(stderr, "palmette-lab-links: %s: %s\n", what, strerror(errno));
    return 1;
}

/* Reads all of /proc/net/dev, which the kernel returns about a page at a time. Returns its length; 0 or less where it
 * can't be read. */
static ssize_t read_all(int source, char *text) {
    ssize_t length = 0;
    for (;;) {
        const ssize_t n = pread(source, text + length, (size_t)(TEXT - 1 - length), length);
        if (n < 0) return n;
        if (n == 0) break;
        length += n;
    }
    text[length] = 0;
    return length;
}

/* Parses both counters of each interface from the text of /proc/net/dev. Returns how many interfaces were found. */
static int parse(const char *text, char **names, int count, uint64_t *counters) {
    int found = 0;
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        if (*line == '\n') ++line;
        while (*line == ' ') ++line;
        const char *colon = strpbrk(line, ":\n");
        if (!colon || *colon != ':') continue;
        for (int i = 0; i < count; ++i) {
            if (strlen(names[i]) != (size_t)(colon - line) || strncmp(names[i], line, (size_t)(colon - line)) != 0)
                continue;
            /* Eight receive counters, then the transmit counters. */
            if (sscanf(colon + 1, "%" SCNu64 " %*s %*s %*s %*s %*s %*s %*s %" SCNu64, &counters[2 * i],
                       &counters[2 * i + 1]) == 2)
                ++found;
            break;
        }
    }
    return found;
}

int main(int argc, char **argv) {
    if (argc < 5 || argc - 4 > MOST) {
        fprintf(stderr, "usage: palmette-lab-links SECONDS PERIOD_US LOG INTERFACE...\n");
        return 2;
    }
    const double seconds = atof(argv[1]);
    const long period_us = atol(argv[2]);
    char **names = argv + 4;
    const int count = argc - 4;
    if (seconds <= 0 || period_us < 100 || period_us > 1000000) {
        fprintf(stderr, "palmette-lab-links: SECONDS is above 0, PERIOD_US 100 to 1000000\n");
        return 2;
    }
    signal(SIGTERM, end);
    signal(SIGINT, end);
    static char text[TEXT];
    static uint64_t counters[2 * MOST];
    const int source = open("/proc/self/net/dev", O_RDONLY | O_CLOEXEC);
    FILE *log = fopen(argv[3], "we");
    if (source < 0) return fail("/proc/self/net/dev");
    if (!log) return fail(argv[3]);
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    const double until_s = seconds_of(next) + seconds;
    for (int rows = 0; !ended; ++rows) {
        const ssize_t length = read_all(source, text);
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (length <= 0) return fail("/proc/self/net/dev");
        if (parse(text, names, count, counters) < count) {
            fprintf(stderr, "palmette-lab-links: not all of the interfaces are there\n");
            return 1;
        }
        const double time_s = seconds_of(now);
        if (rows == 0) {
            puts("ready");
            fflush(stdout);
        }
        if (fwrite(&time_s, sizeof time_s, 1, log) != 1 ||
            fwrite(counters, sizeof *counters, 2 * (size_t)count, log) != 2 * (size_t)count)
            return fail(argv[3]);
        if (time_s >= until_s) break;
        next.tv_nsec += period_us * 1000;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        /* Missed samples are skipped, not caught up on. */
        if (seconds_of(next) < time_s) next = now;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return fclose(log) == 0 ? 0 : fail(argv[3]);
}
