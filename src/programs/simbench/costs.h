/* CPU overheads of messages at sender and receiver, charged by the simulation in addition to link time. */
#ifndef SIMBENCH_COSTS_H
#define SIMBENCH_COSTS_H

#ifdef __cplusplus
extern "C" {
#endif

/* CPU time: per message, and per byte. */
struct end_cost {
    double message_s, byte_s;
};

/* By location of the two ranks: intra-host, and inter-host. */
struct costs {
    struct end_cost send_inside, receive_inside, send_between, receive_between;
    /* Larger messages have no overhead: the simulator charges none to their blocking sends, hence none to nonblocking
     * ones. */
    unsigned long eager_bytes;
};

/* Registers these costs with the simulation. */
void charge(const struct costs* costs);

#ifdef __cplusplus
}
#endif

#endif
