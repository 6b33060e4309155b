/* A layer below palmette that makes an MPI one that takes device memory: it answers so, and copies the buffers of some
 * collectives itself. At the end it tells how many of its calls had such buffers.
 *
 * Build with -D_C=_c for programs that call functions with large counts.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN(a, b) a##b
#define NAMED(a, b) JOIN(a, b)
#ifdef _C
typedef MPI_Count Count;
#define FUNCTION(name) NAMED(name, _C)
#else
typedef int Count;
#define FUNCTION(name) name
#endif

typedef unsigned long long Pointer;
static int (*attribute)(void *, int, Pointer);
static int (*copy)(Pointer, Pointer, size_t);
static int calls = 0;

static __attribute__((destructor)) void tell(void) {
    if (calls > 0) fprintf(stderr, "calls with device memory: %d\n", calls);
}

int MPIX_Query_cuda_support(void) { return 1; }

static int on_device(const void *buffer) {
    unsigned type = 0;
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!driver || buffer == MPI_IN_PLACE) return 0;
    *(void **)&attribute = dlsym(driver, "cuPointerGetAttribute");
    *(void **)&copy = dlsym(driver, "cuMemcpy");
    return attribute(&type, 2, (Pointer)buffer) == 0 && type == 2;
}

/* The buffer itself, or a copy of it in the host's memory. */
static void *taken(const void *buffer, Count count, MPI_Datatype type) {
    int size = 0;
    PMPI_Type_size(type, &size);
    if (!on_device(buffer)) return (void *)buffer;
    void *out = malloc((size_t)count * (size_t)size + 1);
    copy((Pointer)out, (Pointer)buffer, (size_t)count * (size_t)size);
    return out;
}

static void given_back(void *buffer, void *taken, Count count, MPI_Datatype type) {
    int size = 0;
    PMPI_Type_size(type, &size);
    if (taken == buffer) return;
    copy((Pointer)buffer, (Pointer)taken, (size_t)count * (size_t)size);
    free(taken);
}

int FUNCTION(MPI_Allreduce)(const void *from, void *to, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    void *in = taken(from, count, type), *out = taken(to, count, type);
    calls += in != from || out != to;
    const int code = FUNCTION(PMPI_Allreduce)(in, out, count, type, op, comm);
    given_back(to, out, count, type);
    if (in != from) free(in);
    return code;
}

int FUNCTION(MPI_Bcast)(void *buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm) {
    void *in = taken(buffer, count, type);
    calls += in != buffer;
    const int code = FUNCTION(PMPI_Bcast)(in, count, type, root, comm);
    given_back(buffer, in, count, type);
    return code;
}

/* Done at once, which a nonblocking call may. */
int FUNCTION(MPI_Iallreduce)(const void *from, void *to, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                             MPI_Request *request) {
    void *in = taken(from, count, type), *out = taken(to, count, type);
    calls += in != from || out != to;
    int code = FUNCTION(PMPI_Iallreduce)(in, out, count, type, op, comm, request);
    if (in == from && out == to) return code;
    if (code == MPI_SUCCESS) code = PMPI_Wait(request, MPI_STATUS_IGNORE);
    given_back(to, out, count, type);
    if (in != from) free(in);
    /* A request that is complete. */
    return code == MPI_SUCCESS ? PMPI_Ibarrier(MPI_COMM_SELF, request) : code;
}

/* Persistent calls with device memory, whose copies are made at their starts and ends. */
static struct Persistent {
    MPI_Request request;
    const void *from;
    void *to, *in, *out;
    size_t bytes;
    int active;
} persistent[64];

static struct Persistent *find(MPI_Request request) {
    for (int i = 0; i < 64; ++i)
        if (persistent[i].in && persistent[i].request == request) return &persistent[i];
    return NULL;
}

int FUNCTION(MPI_Allreduce_init)(const void *from, void *to, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                 MPI_Info info, MPI_Request *request) {
    int size = 0, slot = 0;
    PMPI_Type_size(type, &size);
    if (!on_device(from) && !on_device(to))
        return FUNCTION(PMPI_Allreduce_init)(from, to, count, type, op, comm, info, request);
    while (persistent[slot].in) ++slot;
    struct Persistent new = {.from = from, .to = to, .bytes = (size_t)count * (size_t)size};
    new.in = taken(from, count, type);
    new.out = taken(to, count, type);
    ++calls;
    const int code = FUNCTION(PMPI_Allreduce_init)(new.in, new.out, count, type, op, comm, info, request);
    new.request = *request;
    persistent[slot] = new;
    return code;
}

int MPI_Start(MPI_Request *request) {
    struct Persistent *own = find(*request);
    if (own && own->in != own->from) copy((Pointer)own->in, (Pointer)own->from, own->bytes);
    if (own) own->active = 1;
    return PMPI_Start(request);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    struct Persistent *own = find(*request);
    const int code = PMPI_Wait(request, status);
    if (own && own->active && own->out != own->to) copy((Pointer)own->to, (Pointer)own->out, own->bytes);
    if (own) own->active = 0;
    return code;
}

int MPI_Request_free(MPI_Request *request) {
    struct Persistent *own = find(*request);
    const int code = PMPI_Request_free(request);
    if (!own) return code;
    if (own->in != own->from) free(own->in);
    if (own->out != own->to) free(own->out);
    own->in = NULL;
    return code;
}
