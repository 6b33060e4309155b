/* Intra-node transports: double-buffered shared memory (copy-in, copy-out), and single copy by process_vm_readv (CMA).
 *
 * Each message has a slot in its target's shared memory. Shared memory: the sender writes up to two chunks ahead of the
 * receiver. Single copy, a receiver-driven rendezvous: the sender signals ready, the receiver reads and signals
 * completion. Counters are monotonic across calls. */
#ifndef PATTERNBENCH_MEMORY_H
#define PATTERNBENCH_MEMORY_H

#include <errno.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "messages.h"

enum { CHUNK = 32 << 10, CHUNKS = 2, LINE = 64 };

struct slot {
    _Alignas(LINE) _Atomic uint64_t written_count; /* chunks written, or ready signals */
    _Alignas(LINE) _Atomic uint64_t read_count;    /* chunks read, or completion signals */
    _Alignas(LINE) int64_t pid;                    /* the sender's, with the address of its payload */
    uint64_t address;
    _Alignas(LINE) unsigned char data[CHUNKS][CHUNK];
};

/* State of one end of a message in flight. */
struct endpoint {
    struct slot* slot;
    uint64_t before; /* the counter at the beginning of this call */
    int64_t done;    /* bytes */
};

struct node {
    MPI_Comm comm;
    MPI_Win window;
    bool used;
};

/* Sender progress; returns whether there was any. Sets `over` on completion. */
static bool progress_send(const struct message* m, struct endpoint* p, const unsigned char* memory, bool* over) {
    struct slot* s = p->slot;
    if (m->library == BY_SINGLE_COPY) {
        if (p->done == 0) {
            p->done = m->bytes;
            atomic_store_explicit(&s->written_count, p->before + 1, memory_order_release);
            return true;
        }
        *over = atomic_load_explicit(&s->read_count, memory_order_acquire) == p->before + 1;
        return *over;
    }
    const uint64_t written = atomic_load_explicit(&s->written_count, memory_order_relaxed);
    if (written - atomic_load_explicit(&s->read_count, memory_order_acquire) >= CHUNKS) return false;
    const int64_t left = m->bytes - p->done, now = left < CHUNK ? left : CHUNK;
    memcpy(s->data[written % CHUNKS], memory + m->source_at + p->done, (size_t)now);
    p->done += now;
    atomic_store_explicit(&s->written_count, written + 1, memory_order_release);
    *over = p->done == m->bytes;
    return true;
}

/* Reads the memory of another process; false with errno. */
static bool read_from(const struct slot* s, unsigned char* to, int64_t bytes) {
    for (int64_t done = 0; done < bytes;) {
        struct iovec here = {to + done, (size_t)(bytes - done)};
        struct iovec there = {(void*)(uintptr_t)(s->address + (uint64_t)done), (size_t)(bytes - done)};
        const ssize_t now = process_vm_readv((pid_t)s->pid, &here, 1, &there, 1, 0);
        if (now <= 0) return false;
        done += now;
    }
    return true;
}

static bool progress_receive(const struct message* m, struct endpoint* p, unsigned char* memory, bool* over) {
    struct slot* s = p->slot;
    if (m->library == BY_SINGLE_COPY) {
        if (atomic_load_explicit(&s->written_count, memory_order_acquire) != p->before + 1) return false;
        /* Permission was tested when the slots were created. */
        if (!read_from(s, memory + m->target_at, m->bytes)) stop("process_vm_readv: %s", strerror(errno));
        atomic_store_explicit(&s->read_count, p->before + 1, memory_order_release);
        return *over = true;
    }
    const uint64_t read = atomic_load_explicit(&s->read_count, memory_order_relaxed);
    if (atomic_load_explicit(&s->written_count, memory_order_acquire) == read) return false;
    const int64_t left = m->bytes - p->done, now = left < CHUNK ? left : CHUNK;
    memcpy(memory + m->target_at + p->done, s->data[read % CHUNKS], (size_t)now);
    p->done += now;
    atomic_store_explicit(&s->read_count, read + 1, memory_order_release);
    *over = p->done == m->bytes;
    return true;
}

static bool uses_node_transport(const struct message* m) {
    return m->library == BY_SHARED_MEMORY || m->library == BY_SINGLE_COPY;
}

/* Allocates the slots and finds those of the peers; `out` and `in` are by own message. Collective. Returns NULL, or an
 * error of this rank. */
static const char* make_slots(const struct pattern* p, int rank, unsigned char* memory, struct node* node,
                              struct endpoint* out, struct endpoint* in) {
    static char complaint[256];
    complaint[0] = 0;
    int mine = 0, any = 0, slots = 0;
    for (int i = 0; i < p->own_count; ++i) {
        if (!uses_node_transport(&p->own[i])) continue;
        mine = 1;
        if (p->own[i].target == rank) ++slots;
    }
    PMPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    node->used = any != 0;
    if (!any) return NULL;
    PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node->comm);
    struct slot* base = NULL;
    /* One cache line extra for alignment, which not all MPIs guarantee. */
    if (PMPI_Win_allocate_shared((MPI_Aint)((size_t)slots * sizeof(struct slot) + LINE), 1, MPI_INFO_NULL, node->comm,
                                 &base, &node->window) != MPI_SUCCESS)
        stop("no shared memory for %d messages; take fewer", slots);
    memset((void*)base, 0, (size_t)slots * sizeof(struct slot) + LINE);
    MPI_Group world, node_group;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(node->comm, &node_group);
    PMPI_Barrier(node->comm);
    for (int i = 0; i < p->own_count; ++i) {
        const struct message* m = &p->own[i];
        if (!uses_node_transport(m)) continue;
        int place = MPI_UNDEFINED, other = MPI_UNDEFINED;
        PMPI_Group_translate_ranks(world, 1, &m->target, node_group, &place);
        PMPI_Group_translate_ranks(world, 1, &m->source, node_group, &other);
        if (place == MPI_UNDEFINED || other == MPI_UNDEFINED) {
            snprintf(complaint, sizeof complaint, "ranks %d and %d share no memory; send their messages by mpi or rma",
                     m->source, m->target);
            continue;
        }
        MPI_Aint bytes;
        int unit;
        unsigned char* there;
        PMPI_Win_shared_query(node->window, place, &bytes, &unit, &there);
        const uintptr_t aligned = ((uintptr_t)there + LINE - 1) / LINE * LINE;
        struct slot* slot = (struct slot*)aligned + m->slot;
        if (m->source == rank) {
            out[i].slot = slot;
            slot->pid = getpid();
            slot->address = (uint64_t)(uintptr_t)(memory + m->source_at);
        }
        if (m->target == rank) in[i].slot = slot;
    }
    atomic_thread_fence(memory_order_seq_cst);
    PMPI_Barrier(node->comm);
    for (int i = 0; i < p->own_count && !complaint[0]; ++i) {
        unsigned char byte;
        if (p->own[i].library == BY_SINGLE_COPY && in[i].slot && !read_from(in[i].slot, &byte, 1))
            snprintf(complaint, sizeof complaint, "rank %d may not read the memory of rank %d (%s); send by shm or mpi",
                     rank, p->own[i].source, strerror(errno));
    }
    PMPI_Group_free(&world);
    PMPI_Group_free(&node_group);
    return complaint[0] ? complaint : NULL;
}

static void free_slots(struct node* node) {
    if (!node->used) return;
    PMPI_Win_free(&node->window);
    PMPI_Comm_free(&node->comm);
}

#endif
