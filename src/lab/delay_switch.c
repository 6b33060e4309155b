/* palmette-lab-delay-switch DELAY_US INTERFACE...
 *
 * A user-space Ethernet switch that delays every frame by DELAY_US: replaces a bridge where a lab needs a high-latency
 * spine and the kernel has no netem. Frames are read and written whole (GSO frames too, with their virtio header), so
 * that its CPU cost is per frame and not per packet.
 *
 * A frame is due DELAY_US after the kernel's receive time stamp. So polling the ports when the first held frame is due
 * is enough: all frames that arrived meanwhile are due later. The process sleeps otherwise, and frames that are due
 * within the slack share one wake-up. Goes to the background once all ports are open, and runs until it is killed. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    max_ports = 256,
    max_addresses = 4096,
    queue_length = 16384,                         /* frames held per port: 1 GiB of GSO frames at most */
    header_bytes = sizeof(struct virtio_net_hdr), /* stands in front of every frame */
    max_frame_bytes = header_bytes + ETH_HLEN + 4 + (1 << 16),
    socket_buffer_bytes = 64 << 20,
};

/* How early a frame may leave, as a share of the delay: frames that are due together share one wake-up. */
static const double slack = 0.02;

struct frame {
    double due;
    size_t size;
    unsigned char *data;
};

/* Frames of one port in order of arrival, which is also the order in which they are due. */
struct port {
    int fd;
    unsigned head, tail;
    struct frame *queue;
};

struct address {
    unsigned char mac[ETH_ALEN];
    int port;
};

static struct port ports[max_ports];
static int port_count;
static struct address addresses[max_addresses];
static int address_count;

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct address *find_address(const unsigned char *mac) {
    for (int i = 0; i < address_count; ++i)
        if (memcmp(addresses[i].mac, mac, ETH_ALEN) == 0) return &addresses[i];
    return NULL;
}

static void learn(const unsigned char *mac, int port) {
    struct address *known = find_address(mac);
    if (known == NULL && address_count < max_addresses) {
        known = &addresses[address_count++];
        memcpy(known->mac, mac, ETH_ALEN);
    }
    if (known) known->port = port;
}

static int open_port(const char *interface) {
    const int one = 1, buffer = socket_buffer_bytes;
    const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0); /* protocol 0: nothing arrives before bind */
    struct sockaddr_ll where = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    where.sll_ifindex = (int)if_nametoindex(interface);
    struct packet_mreq promiscuous = {.mr_ifindex = where.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
    if (fd < 0 || where.sll_ifindex == 0) return -1;
    /* In a user namespace, as much as net.core.rmem_max and wmem_max allow. */
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) < 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer) < 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one) < 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) < 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one) < 0 ||
        bind(fd, (struct sockaddr *)&where, sizeof where) < 0)
        return -1;
    return fd;
}

/* Seconds since the kernel received the message: clamped to 0 to `limit_s`, in case the wall clock was adjusted. */
static double age_of(struct msghdr *message, double limit_s) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS) continue;
        struct timespec stamp;
        memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
        const double age = seconds(CLOCK_REALTIME) - ((double)stamp.tv_sec + 1e-9 * (double)stamp.tv_nsec);
        return age < 0 ? 0 : age < limit_s ? age : limit_s;
    }
    return 0;
}

/* Receives all pending frames of a port into its queue; a full queue drops frames, as a switch does. */
static void take_in(int index, double delay_s) {
    static unsigned char buffer[max_frame_bytes];
    struct port *port = &ports[index];
    for (;;) {
        char control[256];
        struct iovec part = {buffer, sizeof buffer};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        const ssize_t size = recvmsg(port->fd, &message, 0);
        if (size < 0) return;
        if (size < header_bytes + ETH_HLEN) continue;
        learn(buffer + header_bytes + ETH_ALEN, index);
        if (port->tail - port->head == queue_length) continue;
        struct frame *frame = &port->queue[port->tail % queue_length];
        frame->data = malloc((size_t)size);
        if (frame->data == NULL) continue;
        memcpy(frame->data, buffer, (size_t)size);
        frame->size = (size_t)size;
        frame->due = seconds(CLOCK_MONOTONIC) + delay_s - age_of(&message, delay_s);
        ++port->tail;
    }
}

/* A failed send is a frame dropped at a full output queue: TCP retransmits. */
static void put(int to, const struct frame *frame) {
    if (send(ports[to].fd, frame->data, frame->size, MSG_DONTWAIT) < 0) return;
}

static void deliver(int from, const struct frame *frame) {
    const unsigned char *destination = frame->data + header_bytes;
    const struct address *known = (destination[0] & 1) ? NULL : find_address(destination);
    if (known && known->port != from) put(known->port, frame);
    if (known) return;
    for (int to = 0; to < port_count; ++to)
        if (to != from) put(to, frame);
}

/* Sends what is due by `now`; returns when the next frame is due, or 0 when none is held. */
static double give_out(double now, double slack_s) {
    double next = 0;
    for (int i = 0; i < port_count; ++i) {
        struct port *port = &ports[i];
        for (; port->head != port->tail; ++port->head) {
            struct frame *frame = &port->queue[port->head % queue_length];
            if (frame->due > now + slack_s) {
                if (next == 0 || frame->due < next) next = frame->due;
                break;
            }
            deliver(i, frame);
            free(frame->data);
        }
    }
    return next;
}

static void sleep_until(double when) {
    struct timespec t = {(time_t)when, 0};
    t.tv_nsec = (long)((when - (double)t.tv_sec) * 1e9);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

int main(int argc, char **argv) {
    if (argc < 3 || argc - 2 > max_ports) {
        fprintf(stderr, "usage: palmette-lab-delay-switch DELAY_US INTERFACE... (at most %d)\n", max_ports);
        return 2;
    }
    const double delay_s = atof(argv[1]) * 1e-6;
    struct pollfd watched[max_ports];
    port_count = argc - 2;
    for (int i = 0; i < port_count; ++i) {
        ports[i].fd = open_port(argv[2 + i]);
        ports[i].queue = calloc(queue_length, sizeof *ports[i].queue);
        if (ports[i].fd < 0 || ports[i].queue == NULL) {
            fprintf(stderr, "cannot open port %s: %s\n", argv[2 + i], strerror(errno));
            return 1;
        }
        watched[i] = (struct pollfd){.fd = ports[i].fd, .events = POLLIN};
    }
    if (daemon(1, 0) < 0) {
        perror("cannot go to the background");
        return 1;
    }
    /* Lateness adds to the delay of every frame, so run at a higher priority than the ranks where permitted. */
    const struct sched_param priority = {.sched_priority = 5};
    sched_setscheduler(0, SCHED_FIFO, &priority);
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    for (;;) {
        for (int i = 0; i < port_count; ++i) take_in(i, delay_s);
        const double next = give_out(seconds(CLOCK_MONOTONIC), slack * delay_s);
        if (next > 0)
            sleep_until(next);
        else
            poll(watched, (nfds_t)port_count, -1);
    }
}
