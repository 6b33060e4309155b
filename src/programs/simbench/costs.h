/* What a message costs its sender and its receiver, besides the links that it crosses. */
#ifndef SIMBENCH_COSTS_H
#define SIMBENCH_COSTS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds that a rank is busy: each message, and each byte of it. */
struct end_cost {
    double message_s, byte_s;
};

/* By the two ranks' places: on one host, and on different ones. */
struct costs {
    struct end_cost send_inside, receive_inside, send_between, receive_between;
    /* Messages from there on keep nobody busy: the simulator charges none to a blocking send of theirs, and so none to
     * a nonblocking one. */
    unsigned long eager_bytes;
};

/* Let the simulation charge these from now on. */
void charge(const struct costs* costs);

#ifdef __cplusplus
}
#endif

#endif
