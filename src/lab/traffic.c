/* palmette-lab-traffic SECONDS BYTES ME PORT COUNTERS ADDRESS...
 *
 * One process of a background all-to-all: process ME (from 0) of as many as there are addresses, each listening on PORT
 * plus its number. In every round it sends BYTES to each other process, one after the other, and receives as much from
 * each; the next round begins when that is done. Few bytes are in flight at a time: deep queues at a saturated link
 * would delay all other messages for longer than on any real network (bufferbloat). COUNTERS is a file of one 64-bit
 * number per process: bytes that were sent to it so far, for measurements.
 *
 * Prints "ready" when all connections are established. Ends after SECONDS, at SIGTERM, or when another process ends;
 * status 1: it could not begin. One thread that sleeps in poll(), to leave the cores to the measured ranks. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1024, CHUNK = 64 << 10, SOCKET_BUFFER = 16 << 10, CONNECT_TIMEOUT_S = 20 };

static volatile sig_atomic_t ended;
static int processes, me;
static int sockets[MOST];
static uint64_t received[MOST];
static volatile uint64_t *sent; /* the counters file */

static void end(int number) {
    (void)number;
    ended = 1;
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int fail(const char *what) {
    fprintf(stderr, "palmette-lab-traffic: process %d: %s: %s\n", me, what, strerror(errno));
    return 1;
}

static struct sockaddr_in address_of(const char *text, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, text, &address.sin_addr);
    return address;
}

/* Must be set before connect or on the listener: buffer sizes are fixed when the connection is established. */
static void limit_buffers(int s) {
    const int bytes = SOCKET_BUFFER;
    setsockopt(s, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    setsockopt(s, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

static int listen_at(int port) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (listener < 0) return -1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    limit_buffers(listener);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, MOST) < 0) return -1;
    return listener;
}

/* Connects to a process, which may not listen yet, and sends this process's number. */
static int connect_to(const char *host, int port, double until_s) {
    while (!ended && now_s() < until_s) {
        const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const struct sockaddr_in there = address_of(host, port);
        const uint32_t name = htonl((uint32_t)me);
        if (s < 0) return -1;
        limit_buffers(s);
        if (connect(s, (const struct sockaddr *)&there, sizeof there) == 0 &&
            send(s, &name, sizeof name, MSG_NOSIGNAL) == sizeof name)
            return s;
        close(s);
        usleep(20000);
    }
    errno = ETIMEDOUT;
    return -1;
}

/* Accepts connections of all processes with higher numbers. */
static int accept_all(int listener, double until_s) {
    for (int missing = processes - 1 - me; missing > 0; --missing) {
        struct pollfd waiting = {.fd = listener, .events = POLLIN};
        if (poll(&waiting, 1, (int)((until_s - now_s()) * 1000)) <= 0) return errno = ETIMEDOUT, -1;
        const int s = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        uint32_t name = 0;
        if (s < 0 || recv(s, &name, sizeof name, MSG_WAITALL) != sizeof name) return -1;
        name = ntohl(name);
        if (name <= (uint32_t)me || name >= (uint32_t)processes || sockets[name] >= 0) return errno = EPROTO, -1;
        sockets[name] = s;
    }
    return 0;
}

/* Sends to `peer` up to the limit of this round, without blocking. Returns -1 when it is gone. */
static int send_some(int peer, uint64_t limit, const char *data) {
    while (sent[peer] < limit) {
        const uint64_t left = limit - sent[peer];
        const ssize_t n = send(sockets[peer], data, left < CHUNK ? (size_t)left : CHUNK, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
        sent[peer] += (uint64_t)n;
    }
    return 0;
}

static int receive_some(int peer, char *data) {
    for (;;) {
        const ssize_t n = recv(sockets[peer], data, CHUNK, MSG_DONTWAIT);
        if (n == 0) return -1;
        if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
        received[peer] += (uint64_t)n;
        if (n < CHUNK) return 0;
    }
}

static void exchange(uint64_t bytes, double until_s) {
    static char data[CHUNK];
    struct pollfd waiting[MOST];
    uint64_t limit = bytes;
    int step = 1; /* distance of the current target */
    while (!ended && now_s() < until_s) {
        const int target = (me + step) % processes;
        if (step < processes && sent[target] >= limit) {
            ++step;
            continue;
        }
        int missing = 0;
        for (int peer = 0; peer < processes; ++peer) {
            waiting[peer] = (struct pollfd){.fd = peer == me ? -1 : sockets[peer], .events = POLLIN};
            missing += peer != me && received[peer] < limit;
        }
        if (step == processes && missing == 0) {
            limit += bytes;
            step = 1;
            continue;
        }
        if (step < processes) waiting[target].events |= POLLOUT;
        if (poll(waiting, (nfds_t)processes, 200) < 0 && errno != EINTR) return;
        for (int peer = 0; peer < processes; ++peer) {
            if (peer == me || waiting[peer].revents == 0) continue;
            if ((waiting[peer].revents & POLLOUT) && send_some(peer, limit, data) < 0) return;
            if ((waiting[peer].revents & (POLLIN | POLLHUP | POLLERR)) && receive_some(peer, data) < 0) return;
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 8 || argc - 6 > MOST) {
        fprintf(stderr, "usage: palmette-lab-traffic SECONDS BYTES ME PORT COUNTERS ADDRESS ADDRESS...\n");
        return 2;
    }
    const double seconds = atof(argv[1]);
    const uint64_t bytes = strtoull(argv[2], NULL, 10);
    me = atoi(argv[3]);
    const int port = atoi(argv[4]);
    processes = argc - 6;
    if (seconds <= 0 || bytes == 0 || me < 0 || me >= processes || port <= 0 || port + processes > 65535) {
        fprintf(stderr,
                "palmette-lab-traffic: bad arguments; SECONDS and BYTES are above 0, ME is one of the processes\n");
        return 2;
    }
    signal(SIGTERM, end);
    signal(SIGINT, end);
    const int counters = open(argv[5], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    const size_t length = (size_t)processes * sizeof *sent;
    if (counters < 0 || ftruncate(counters, (off_t)length) < 0) return fail(argv[5]);
    sent = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, counters, 0);
    if (sent == MAP_FAILED) return fail(argv[5]);

    const double until_s = now_s() + CONNECT_TIMEOUT_S;
    const int listener = listen_at(port + me), on = 1;
    if (listener < 0) return fail("cannot listen");
    for (int peer = 0; peer < processes; ++peer) sockets[peer] = -1;
    for (int peer = 0; peer < me; ++peer)
        if ((sockets[peer] = connect_to(argv[6 + peer], port + peer, until_s)) < 0)
            return fail("cannot reach a process");
    if (accept_all(listener, until_s) < 0) return fail("not all processes called");
    for (int peer = 0; peer < processes; ++peer)
        if (peer != me) setsockopt(sockets[peer], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    puts("ready");
    fflush(stdout);
    exchange(bytes, now_s() + seconds);
    return 0;
}
