/* Executes one call of a pattern: all messages of this rank, step by step. */
#ifndef PATTERNBENCH_EXCHANGE_H
#define PATTERNBENCH_EXCHANGE_H

#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "memory.h"
#include "messages.h"

struct exchange {
    const struct pattern* pattern;
    int rank;
    bool spin;
    unsigned char* memory;
    struct endpoint *out, *in; /* by own message; only of intra-node shared-memory transports */
    MPI_Request* requests;     /* by own message: of its sends first, then of its receives */
    int* completed;
    MPI_Win window; /* over the memory, where messages are put; in one lock_all epoch */
    bool has_window;
    /* Of the last call. */
    double* arrived_s; /* by own message: arrival time; 0: not received by this rank */
    double* entered_s; /* by step; 0: not involved */
};

static MPI_Request* sending(const struct exchange* e, int own) { return &e->requests[own]; }
static MPI_Request* receiving(const struct exchange* e, int own) { return &e->requests[e->pattern->own_count + own]; }

/* Receives are posted before the common start, so that unexpected messages aren't measured. */
static void post_receives(struct exchange* e) {
    const struct pattern* p = e->pattern;
    for (int i = 0; i < p->own_count; ++i) {
        const struct message* m = &p->own[i];
        *sending(e, i) = *receiving(e, i) = MPI_REQUEST_NULL;
        e->arrived_s[i] = 0;
        if (m->target == e->rank && !uses_node_transport(m))
            PMPI_Irecv(e->memory + m->target_at, m->library == BY_RMA ? 0 : (int)m->bytes, MPI_BYTE, m->source, m->tag,
                       MPI_COMM_WORLD, receiving(e, i));
        struct endpoint* const ends[] = {&e->out[i], &e->in[i]};
        for (int end = 0; end < 2; ++end) {
            struct endpoint* endpoint = ends[end];
            endpoint->done = 0;
            /* Both ends start from the receiver's counter, up to date before a call. */
            if (endpoint->slot)
                endpoint->before = atomic_load_explicit(&endpoint->slot->read_count, memory_order_acquire);
        }
    }
    for (int s = 0; s < p->steps; ++s) e->entered_s[s] = 0;
}

static void back_off(const struct exchange* e, int idle) {
    if (e->spin) return;
    if (idle < 100) {
        sched_yield();
        return;
    }
    const struct timespec time = {0, 20000};
    nanosleep(&time, NULL);
}

/* Progresses the shared-memory transfers of a step; returns the number of incomplete ends. */
static int progress_shared_memory(struct exchange* e, int first, int end, bool* moved) {
    int left = 0;
    for (int i = first; i < end; ++i) {
        const struct message* m = &e->pattern->own[i];
        if (!uses_node_transport(m)) continue;
        bool over = false;
        if (m->source == e->rank && e->out[i].done >= 0) {
            *moved = progress_send(m, &e->out[i], e->memory, &over) || *moved;
            if (over)
                e->out[i].done = -1;
            else
                ++left;
        }
        over = false;
        if (m->target == e->rank && e->in[i].done >= 0) {
            *moved = progress_receive(m, &e->in[i], e->memory, &over) || *moved;
            if (over)
                e->in[i].done = -1, e->arrived_s[i] = now_s();
            else
                ++left;
        }
    }
    return left;
}

/* Puts of one step. After the flush, an empty message notifies the target; its receipt counts as the arrival. */
static void put_all(struct exchange* e, int first, int end) {
    for (int pass = 0; e->has_window && pass < 2; ++pass)
        for (int i = first; i < end; ++i) {
            const struct message* m = &e->pattern->own[i];
            if (m->library != BY_RMA || m->source != e->rank) continue;
            if (pass == 0) {
                PMPI_Put(e->memory + m->source_at, (int)m->bytes, MPI_BYTE, m->target, (MPI_Aint)m->target_at,
                         (int)m->bytes, MPI_BYTE, e->window);
            } else {
                PMPI_Win_flush(m->target, e->window);
                PMPI_Isend(NULL, 0, MPI_BYTE, m->target, m->tag, MPI_COMM_WORLD, sending(e, i));
            }
        }
}

static void record_arrivals(struct exchange* e, int count) {
    const int own = e->pattern->own_count;
    const double time_s = now_s();
    for (int i = 0; i < count; ++i)
        if (e->completed[i] >= own) e->arrived_s[e->completed[i] - own] = time_s;
}

static int outstanding_requests(const struct exchange* e, int first, int end) {
    int messages = 0;
    for (int i = first; i < end; ++i)
        messages += (*sending(e, i) != MPI_REQUEST_NULL) + (*receiving(e, i) != MPI_REQUEST_NULL);
    return messages;
}

static void run_step(struct exchange* e, int step, int first, int end) {
    const struct pattern* p = e->pattern;
    const int own = p->own_count;
    bool memory_used = false;
    e->entered_s[step] = now_s();
    for (int i = first; i < end; ++i) {
        const struct message* m = &p->own[i];
        memory_used = memory_used || uses_node_transport(m);
        if (m->library == BY_MPI && m->source == e->rank)
            PMPI_Isend(e->memory + m->source_at, (int)m->bytes, MPI_BYTE, m->target, m->tag, MPI_COMM_WORLD,
                       sending(e, i));
    }
    put_all(e, first, end);
    int messages = 0;
    for (int idle = 0; (messages = outstanding_requests(e, first, end)) > 0 || memory_used;) {
        bool moved = false;
        int count = 0;
        /* Receives of later steps are included: one of them may complete before its step begins, and is recorded now.
         * Puts of other ranks may need progress by this rank's MPI, even where it has no outstanding request. */
        if (memory_used)
            PMPI_Testsome(2 * own, e->requests, &count, e->completed, MPI_STATUSES_IGNORE);
        else
            PMPI_Waitsome(2 * own, e->requests, &count, e->completed, MPI_STATUSES_IGNORE);
        if (count != MPI_UNDEFINED) {
            record_arrivals(e, count);
            moved = count > 0;
        } else if (e->has_window) {
            int flag;
            PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        }
        if (memory_used) memory_used = progress_shared_memory(e, first, end, &moved) > 0;
        idle = moved ? 0 : idle + 1;
        if (idle > 0) back_off(e, idle);
    }
}

/* After post_receives and the common start. */
static void run_exchange(struct exchange* e) {
    const struct pattern* p = e->pattern;
    for (int first = 0; first < p->own_count;) {
        const int step = p->own[first].step;
        int end = first;
        while (end < p->own_count && p->own[end].step == step) ++end;
        run_step(e, step, first, end);
        first = end;
    }
    if (e->has_window) PMPI_Win_sync(e->window);
}

#endif
