/* Linked into a program: CLOCK_REALTIME jumps by JUMP seconds once clock_is_set was called; the kernel's list of clocks
   is the file CLOCKSOURCES. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double jump;

__attribute__((visibility("default"))) void clock_is_set(void) {
    const char *by = getenv("JUMP");
    jump = by ? atof(by) : 0;
}

int clock_gettime(clockid_t id, struct timespec *time) {
    const long code = syscall(SYS_clock_gettime, id, time);
    if (code == 0 && id == CLOCK_REALTIME && jump != 0) {
        const long long ns = time->tv_sec * 1000000000LL + time->tv_nsec + (long long)(jump * 1e9);
        time->tv_sec = ns / 1000000000LL;
        time->tv_nsec = ns % 1000000000LL;
    }
    return (int)code;
}

int open(const char *path, int flags, ...) {
    static int (*next)(const char *, int, ...);
    const char *list = getenv("CLOCKSOURCES");
    va_list more;
    va_start(more, flags);
    const int mode = va_arg(more, int);
    va_end(more);
    if (!next) next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    return next(list && strstr(path, "available_clocksource") ? list : path, flags, mode);
}
