/* The experiments on pairs of ranks: ping-pong, LogP overhead, burst, flow. Each time is measured on one rank's clock
 * alone. */
#ifndef CALIBRATE_EXPERIMENTS_H
#define CALIBRATE_EXPERIMENTS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>

#include "waiting.h"

enum { DATA = 11, ANSWER, READY, GO, RESULT, WARM_TRIPS = 3, WINDOW = 4 };

static void send_to(char* buffer, int bytes, int to, int tag) {
    PMPI_Send(buffer, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

static void receive_from(char* buffer, int bytes, int from, int tag) {
    PMPI_Recv(buffer, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Half of each round-trip time, after a few warm-up trips that set up the connection. */
static void pingpong(char* buffer, int bytes, int trips, int peer, bool leads, double* half_s) {
    for (int i = -WARM_TRIPS; i < trips; ++i) {
        if (leads) {
            const double begin_s = now_s();
            send_to(buffer, bytes, peer, DATA);
            receive_from(buffer, bytes, peer, DATA);
            if (i >= 0) half_s[i] = (now_s() - begin_s) / 2;
        } else {
            receive_from(buffer, bytes, peer, DATA);
            send_to(buffer, bytes, peer, DATA);
        }
    }
}

/* Send and receive overhead (o of LogP): time in a send, then time in the receive of an answer that arrived earlier:
 * Kielmann, Bal, Verstoep, Fast measurement of LogP parameters for message passing platforms, 2000. Sends come first in
 * `times`, then receives. */
static void overhead(char* buffer, int bytes, int count, double wait_s, int peer, bool leads, double* times) {
    for (int i = -1; i < count; ++i) {
        if (leads) {
            double begin_s = now_s();
            send_to(buffer, bytes, peer, DATA);
            const double send_s = now_s() - begin_s;
            pass_time(wait_s);
            begin_s = now_s();
            receive_from(buffer, bytes, peer, ANSWER);
            if (i >= 0) times[i] = send_s, times[count + i] = now_s() - begin_s;
        } else {
            receive_from(buffer, bytes, peer, DATA);
            send_to(buffer, bytes, peer, ANSWER);
        }
    }
}

static void burst(char* buffer, int bytes, int count, int trips, int peer, bool leads, double* times) {
    for (int i = -1; i < trips; ++i) {
        const double begin_s = now_s();
        for (int m = 0; m < count; ++m) {
            if (leads)
                send_to(buffer, bytes, peer, DATA);
            else
                receive_from(buffer, bytes, peer, DATA);
        }
        if (leads)
            receive_from(buffer, 0, peer, ANSWER);
        else
            send_to(buffer, 0, peer, ANSWER);
        if (leads && i >= 0) times[i] = now_s() - begin_s;
    }
}

/* The sending end of a flow with WINDOW messages in flight. Computes the bandwidth from the acknowledgements between
 * `warm_s` and `warm_s + seconds` after the start (the first ones after it, if there are too few), as the slope of a
 * least-squares fit of (time, count): acknowledgements may arrive in bunches, which would bias a rate from the first to
 * the last. Empty messages end the flow, one for each posted receive. Returns bytes per second. */
static double send_flow(char* buffer, int bytes, double warm_s, double seconds, int peer) {
    MPI_Request sends[WINDOW];
    const double begin_s = now_s();
    double sum_s = 0, sum_s2 = 0, sum_k = 0, sum_sk = 0; /* of the counted acknowledgements: times, counts before */
    long counted = 0;
    long sent = 0, answered = 0;
    for (;;) {
        if (counted > WINDOW && now_s() - begin_s > warm_s + seconds) break; /* more than a single bunch */
        if (sent - answered == WINDOW) {
            receive_from(buffer + bytes, 0, peer, ANSWER);
            PMPI_Wait(&sends[answered % WINDOW], MPI_STATUS_IGNORE);
            ++answered;
            const double at_s = now_s() - begin_s - warm_s;
            if (at_s >= 0 && (at_s <= seconds || counted <= WINDOW)) { /* no partial bunch at the end */
                const double k = (double)counted++;
                sum_s += at_s, sum_s2 += at_s * at_s, sum_k += k, sum_sk += at_s * k;
            }
        }
        PMPI_Isend(buffer, bytes, MPI_BYTE, peer, DATA, MPI_COMM_WORLD, &sends[sent % WINDOW]);
        ++sent;
    }
    for (; answered < sent; ++answered) {
        receive_from(buffer + bytes, 0, peer, ANSWER);
        PMPI_Wait(&sends[answered % WINDOW], MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < WINDOW; ++i) send_to(buffer, 0, peer, DATA);
    return bytes * (sum_sk - sum_s * sum_k / (double)counted) / (sum_s2 - sum_s * sum_s / (double)counted);
}

/* The receiving end; `buffer` holds WINDOW messages. */
static void receive_flow(char* buffer, int bytes, int peer) {
    MPI_Request receives[WINDOW];
    for (int i = 0; i < WINDOW; ++i)
        PMPI_Irecv(buffer + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, peer, DATA, MPI_COMM_WORLD, &receives[i]);
    for (long at = 0;; ++at) {
        const int slot = (int)(at % WINDOW);
        MPI_Status status;
        int length = 0;
        PMPI_Wait(&receives[slot], &status);
        PMPI_Get_count(&status, MPI_BYTE, &length);
        if (length == 0) {
            for (int i = 1; i < WINDOW; ++i) PMPI_Wait(&receives[(slot + i) % WINDOW], MPI_STATUS_IGNORE);
            return;
        }
        send_to(buffer, 0, peer, ANSWER);
        PMPI_Irecv(buffer + (size_t)slot * (size_t)bytes, bytes, MPI_BYTE, peer, DATA, MPI_COMM_WORLD, &receives[slot]);
    }
}

#endif
