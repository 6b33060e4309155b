/* Transports inside of a node: chunks through memory that ranks share, and reading in the sender's memory.
 *
 * Each message has a slot in its target's shared memory. Chunks: the sender writes up to two ahead of the receiver.
 * Single copy: the sender offers, the receiver reads with process_vm_readv and says so. Counters go on from call to
 * call. */
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
    _Alignas(LINE) _Atomic uint64_t given; /* chunks written, or offers */
    _Alignas(LINE) _Atomic uint64_t taken; /* chunks read, or offers read */
    _Alignas(LINE) int64_t pid;            /* the sender's, with the place of its message */
    uint64_t address;
    _Alignas(LINE) unsigned char data[CHUNKS][CHUNK];
};

/* One end of a message on its way. */
struct passage {
    struct slot* slot;
    uint64_t before; /* the counter at the beginning of this call */
    int64_t done;    /* bytes */
};

struct node {
    MPI_Comm comm;
    MPI_Win window;
    bool used;
};

/* Whether something was moved. `over` is set when the message is. */
static bool give(const struct message* m, struct passage* p, const unsigned char* memory, bool* over) {
    struct slot* s = p->slot;
    if (m->library == BY_SINGLE_COPY) {
        if (p->done == 0) {
            p->done = m->bytes;
            atomic_store_explicit(&s->given, p->before + 1, memory_order_release);
            return true;
        }
        *over = atomic_load_explicit(&s->taken, memory_order_acquire) == p->before + 1;
        return *over;
    }
    const uint64_t written = atomic_load_explicit(&s->given, memory_order_relaxed);
    if (written - atomic_load_explicit(&s->taken, memory_order_acquire) >= CHUNKS) return false;
    const int64_t left = m->bytes - p->done, now = left < CHUNK ? left : CHUNK;
    memcpy(s->data[written % CHUNKS], memory + m->source_at + p->done, (size_t)now);
    p->done += now;
    atomic_store_explicit(&s->given, written + 1, memory_order_release);
    *over = p->done == m->bytes;
    return true;
}

/* Bytes of another process; false with errno. */
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

static bool take(const struct message* m, struct passage* p, unsigned char* memory, bool* over) {
    struct slot* s = p->slot;
    if (m->library == BY_SINGLE_COPY) {
        if (atomic_load_explicit(&s->given, memory_order_acquire) != p->before + 1) return false;
        /* It was tried when the slots were made. */
        if (!read_from(s, memory + m->target_at, m->bytes)) stop("process_vm_readv: %s", strerror(errno));
        atomic_store_explicit(&s->taken, p->before + 1, memory_order_release);
        return *over = true;
    }
    const uint64_t read = atomic_load_explicit(&s->taken, memory_order_relaxed);
    if (atomic_load_explicit(&s->given, memory_order_acquire) == read) return false;
    const int64_t left = m->bytes - p->done, now = left < CHUNK ? left : CHUNK;
    memcpy(memory + m->target_at + p->done, s->data[read % CHUNKS], (size_t)now);
    p->done += now;
    atomic_store_explicit(&s->taken, read + 1, memory_order_release);
    *over = p->done == m->bytes;
    return true;
}

static bool through_memory(const struct message* m) {
    return m->library == BY_SHARED_MEMORY || m->library == BY_SINGLE_COPY;
}

/* Make the slots and find those of the peers; `out` and `in` are by own message. Collective. Returns NULL, or what this
 * rank complains of. */
static const char* make_slots(const struct pattern* p, int rank, unsigned char* memory, struct node* node,
                              struct passage* out, struct passage* in) {
    static char complaint[256];
    complaint[0] = 0;
    int mine = 0, any = 0, slots = 0;
    for (int i = 0; i < p->own_count; ++i) {
        if (!through_memory(&p->own[i])) continue;
        mine = 1;
        if (p->own[i].target == rank) ++slots;
    }
    PMPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    node->used = any != 0;
    if (!any) return NULL;
    PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node->comm);
    struct slot* base = NULL;
    /* A line more than is needed: not all MPIs align it. */
    if (PMPI_Win_allocate_shared((MPI_Aint)((size_t)slots * sizeof(struct slot) + LINE), 1, MPI_INFO_NULL, node->comm,
                                 &base, &node->window) != MPI_SUCCESS)
        stop("no shared memory for %d messages; take fewer", slots);
    memset((void*)base, 0, (size_t)slots * sizeof(struct slot) + LINE);
    MPI_Group world, near;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(node->comm, &near);
    PMPI_Barrier(node->comm);
    for (int i = 0; i < p->own_count; ++i) {
        const struct message* m = &p->own[i];
        if (!through_memory(m)) continue;
        int place = MPI_UNDEFINED, other = MPI_UNDEFINED;
        PMPI_Group_translate_ranks(world, 1, &m->target, near, &place);
        PMPI_Group_translate_ranks(world, 1, &m->source, near, &other);
        if (place == MPI_UNDEFINED || other == MPI_UNDEFINED) {
            snprintf(complaint, sizeof complaint,
                     "ranks %d and %d share no memory; send what they exchange by mpi or rma", m->source, m->target);
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
    PMPI_Group_free(&near);
    return complaint[0] ? complaint : NULL;
}

static void free_slots(struct node* node) {
    if (!node->used) return;
    PMPI_Win_free(&node->window);
    PMPI_Comm_free(&node->comm);
}

#endif
