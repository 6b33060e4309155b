/* Buffers in the memory of a GPU, by CUDA's driver as it is found at run time: no CUDA is needed to build.
 *
 * The harness goes on writing and reading host memory; a call gets the buffers on the device, which hold the same
 * before and are copied back after a verified call. Where the MPI alone can't read device memory, its calls are what a
 * program must do then: copies to pinned host memory, the collective there, and copies back, which all count. */
#ifndef COLLBENCH_DEVICE_MEMORY_H
#define COLLBENCH_DEVICE_MEMORY_H

/* POSIX has functions in pointers to objects (dlsym), which ISO C forbids. */
#pragma GCC diagnostic ignored "-Wpedantic"

#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "work.h"

/* A GPU's memory, that of a stream-ordered pool and that of a mapping of physical memory among it; memory that both
 * sides may touch; the host's, page-locked by the driver. */
enum memory { HOST, CUDA, MANAGED, PINNED, POOL, MAPPED, MEMORIES };
static const char* const memory_names[] = {"host", "cuda", "managed", "pinned", "pool", "mapped"};

struct cuda_driver {
    int (*init)(unsigned);
    int (*device_count)(int*);
    int (*retain)(void**, int);
    int (*set_current)(void*);
    int (*synchronize)(void);
    int (*allocate)(uint64_t*, size_t);
    int (*allocate_managed)(uint64_t*, size_t, unsigned);
    int (*free)(uint64_t);
    int (*to_device)(uint64_t, const void*, size_t);
    int (*to_host)(void*, uint64_t, size_t);
    int (*pin)(void*, size_t, unsigned);
    int (*unpin)(void*);
    int (*error_name)(int, const char**);
};
static struct cuda_driver cuda;
static void* cuda_library;
static int cuda_device;

static void need(int result, const char* what) {
    const char* name = "";
    if (result == 0) return;
    cuda.error_name(result, &name);
    stop("%s: CUDA's driver says %s (%d)", what, name ? name : "", result);
}

/* Takes the driver and makes the context of this rank's device current: devices are dealt to the ranks of a host in
 * turn. Returns NULL, or why there is none, the same on all ranks. Collective. */
static const char* open_cuda(void) {
    static const char* const names[] = {
        "cuInit",           "cuDeviceGetCount", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
        "cuCtxSynchronize", "cuMemAlloc_v2",    "cuMemAllocManaged",        "cuMemFree_v2",
        "cuMemcpyHtoD_v2",  "cuMemcpyDtoH_v2",  "cuMemHostRegister_v2",     "cuMemHostUnregister",
        "cuGetErrorName"};
    static const char* const reasons[] = {NULL, "libcuda.so.1 can't be loaded: no driver of CUDA is installed",
                                          "libcuda.so.1 lacks functions: its driver is too old",
                                          "CUDA's driver finds no device", "no context on the device"};
    enum { FUNCTIONS = sizeof names / sizeof *names };
    _Static_assert(sizeof cuda == FUNCTIONS * sizeof(void*), "a name for each function");
    int local = 0, count = 0, worst = 0, mine = 0;
    MPI_Comm node;
    PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    PMPI_Comm_rank(node, &local);
    PMPI_Comm_free(&node);
    void* library = cuda_library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void* functions[FUNCTIONS];
    if (!library) mine = 1;
    for (int i = 0; i < FUNCTIONS && !mine; ++i)
        if (!(functions[i] = dlsym(library, names[i]))) mine = 2;
    if (!mine) {
        void* context;
        memcpy(&cuda, functions, sizeof cuda);
        if (cuda.init(0) != 0 || cuda.device_count(&count) != 0 || count == 0)
            mine = 3;
        else if (cuda.retain(&context, cuda_device = local % count) != 0 || cuda.set_current(context) != 0)
            mine = 4;
    }
    PMPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return reasons[worst];
}

struct mapping {
    uint64_t at, handle;
    size_t bytes;
};

/* A cell in device memory. */
static struct {
    enum memory memory;
    bool copies[2]; /* by variant: it gets copies in host memory */
    bool verifying; /* the call is to have the host's data, and its result is looked at */
    const struct collective* inner;
    struct work work; /* as the harness's, but for the buffers */
    struct mapping send, recv;
    bool pinned[2]; /* the host's send and receive buffers; where it can't be, copies are slower */
} on_device;

static uint64_t number_of(const void* address) { return (uint64_t)(uintptr_t)address; }

/* A function of newer drivers. */
static void* newer(const char* name) {
    void* function = dlsym(cuda_library, name);
    if (!function) stop("CUDA's driver has no %s; leave this kind of memory out", name);
    return function;
}

struct location {
    int type, id;
};
struct allocation_properties { /* CUmemAllocationProp */
    int type, handle_types;
    struct location location;
    void* windows;
    unsigned char flags[8];
};
struct access_description { /* CUmemAccessDesc */
    struct location location;
    int flags;
};

/* Physical memory of the device, mapped into an address range. */
static struct mapping map_memory(size_t bytes) {
    int (*granularity)(size_t*, const struct allocation_properties*, int) = newer("cuMemGetAllocationGranularity");
    int (*reserve)(uint64_t*, size_t, size_t, uint64_t, uint64_t) = newer("cuMemAddressReserve");
    int (*create)(uint64_t*, size_t, const struct allocation_properties*, uint64_t) = newer("cuMemCreate");
    int (*map)(uint64_t, size_t, size_t, uint64_t, uint64_t) = newer("cuMemMap");
    int (*permit)(uint64_t, size_t, const struct access_description*, size_t) = newer("cuMemSetAccess");
    const struct allocation_properties what = {.type = 1, .location = {1, cuda_device}};
    const struct access_description access = {{1, cuda_device}, 3};
    struct mapping made;
    size_t unit = 0;
    need(granularity(&unit, &what, 0), "the granularity of mapped memory");
    made.bytes = (bytes + unit - 1) / unit * unit;
    need(reserve(&made.at, made.bytes, 0, 0, 0), "an address range");
    need(create(&made.handle, made.bytes, &what, 0), "physical memory");
    need(map(made.at, made.bytes, 0, made.handle, 0), "mapping memory");
    need(permit(made.at, made.bytes, &access, 1), "access to mapped memory");
    return made;
}
static void unmap_memory(const struct mapping* made) {
    int (*unmap)(uint64_t, size_t) = newer("cuMemUnmap");
    int (*release)(uint64_t) = newer("cuMemRelease");
    int (*give_back)(uint64_t, size_t) = newer("cuMemAddressFree");
    need(unmap(made->at, made->bytes), "mapped memory");
    need(release(made->handle), "physical memory");
    need(give_back(made->at, made->bytes), "an address range");
}

static unsigned char* allocate_on_device(size_t bytes, struct mapping* mapping) {
    uint64_t at = 0;
    void* pinned = NULL;
    ++bytes; /* never none */
    if (on_device.memory == MAPPED) {
        *mapping = map_memory(bytes);
        at = mapping->at;
    } else if (on_device.memory == POOL) {
        int (*from_pool)(uint64_t*, size_t, void*) = newer("cuMemAllocAsync");
        need(from_pool(&at, bytes, NULL), "memory of a pool");
        need(cuda.synchronize(), "waiting for the device");
    } else if (on_device.memory == PINNED) {
        int (*from_host)(void**, size_t, unsigned) = newer("cuMemHostAlloc");
        need(from_host(&pinned, bytes, 0), "pinned memory");
        return pinned;
    } else {
        need(on_device.memory == MANAGED ? cuda.allocate_managed(&at, bytes, 1) : cuda.allocate(&at, bytes),
             "device memory");
    }
    return (unsigned char*)(uintptr_t)at;
}
static void free_on_device(unsigned char* address, const struct mapping* mapping) {
    if (on_device.memory == MAPPED) {
        unmap_memory(mapping);
    } else if (on_device.memory == POOL) {
        int (*to_pool)(uint64_t, void*) = newer("cuMemFreeAsync");
        need(to_pool(number_of(address), NULL), "memory of a pool");
    } else if (on_device.memory == PINNED) {
        int (*to_host)(void*) = newer("cuMemFreeHost");
        need(to_host(address), "pinned memory");
    } else {
        need(cuda.free(number_of(address)), "device memory");
    }
}

static void put(unsigned char* device, const unsigned char* host, size_t bytes) {
    if (on_device.memory == PINNED)
        memcpy(device, host, bytes);
    else if (bytes)
        need(cuda.to_device(number_of(device), host, bytes), "copying to the device");
}
static void get(unsigned char* host, const unsigned char* device, size_t bytes) {
    if (on_device.memory == PINNED)
        memcpy(host, device, bytes);
    else if (bytes)
        need(cuda.to_host(host, number_of(device), bytes), "copying from the device");
}

static int call_with_copies(const struct work* w, enum variant variant) {
    const struct collective* c = on_device.inner;
    if (takes_part(c->send_place, w)) {
        if (c->send_shape == NOTHING)
            get(w->recv, on_device.work.recv, w->received);
        else
            get(w->send, on_device.work.send, send_bytes(c, w));
    }
    const int error = c->call[variant](w);
    if (takes_part(c->recv_place, w) && is_defined(c, w)) put(on_device.work.recv, w->recv, w->received);
    return error;
}

static int call_on_device(const struct work* w, enum variant variant) {
    if (on_device.verifying) {
        put(on_device.work.send, w->send, send_bytes(on_device.inner, w));
        put(on_device.work.recv, w->recv, w->received + GUARD);
        need(cuda.synchronize(), "waiting for the device");
    }
    const int error =
        on_device.copies[variant] ? call_with_copies(w, variant) : on_device.inner->call[variant](&on_device.work);
    if (on_device.verifying) {
        memset(w->recv, UNTOUCHED, w->received + GUARD); /* copies have left the result here */
        get(w->recv, on_device.work.recv, w->received + GUARD);
    }
    return error;
}
static int call_alone_on_device(const struct work* w) { return call_on_device(w, ALONE); }
static int call_palmette_on_device(const struct work* w) { return call_on_device(w, PALMETTE); }

/* The collective whose calls have `w`'s buffers on the device, until `leave_device`. Overlap isn't measured there. */
static struct collective enter_device(const struct collective* c, const struct work* w) {
    struct collective moved = *c;
    if (on_device.memory == HOST || !has_data(c)) return moved;
    on_device.inner = c;
    on_device.work = *w;
    on_device.work.send = allocate_on_device(send_bytes(c, w), &on_device.send);
    on_device.work.recv = allocate_on_device(w->received + GUARD, &on_device.recv);
    put(on_device.work.send, w->send, send_bytes(c, w));
    put(on_device.work.recv, w->recv, w->received + GUARD);
    need(cuda.synchronize(), "waiting for the device");
    if (on_device.copies[ALONE]) {
        on_device.pinned[0] = cuda.pin(w->send, send_bytes(c, w) + GUARD, 0) == 0;
        on_device.pinned[1] = cuda.pin(w->recv, w->received + GUARD, 0) == 0;
    }
    moved.call[ALONE] = call_alone_on_device;
    moved.call[PALMETTE] = call_palmette_on_device;
    moved.start[ALONE] = moved.start[PALMETTE] = NULL;
    return moved;
}

static void leave_device(const struct collective* c, const struct work* w) {
    if (on_device.memory == HOST || !has_data(c)) return;
    free_on_device(on_device.work.send, &on_device.send);
    free_on_device(on_device.work.recv, &on_device.recv);
    if (on_device.pinned[0]) need(cuda.unpin(w->send), "pinned host memory");
    if (on_device.pinned[1]) need(cuda.unpin(w->recv), "pinned host memory");
    on_device.pinned[0] = on_device.pinned[1] = false;
}

#endif
