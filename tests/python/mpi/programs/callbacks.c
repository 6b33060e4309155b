/* Calls that do not come and go in order: left by a jump, made by callbacks, on coroutines' stacks, from modules that
   come and go. argv: the case, and what it needs. Prints "right" where its results are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static jmp_buf back_to_main;
static ucontext_t main_context, coroutine, other;
static volatile int sink;
static int size_of_type, wrong;

static void jumps(MPI_Comm *comm, int *code, ...) { longjmp(back_to_main, 1); }

static void make(ucontext_t *made, void (*body)(void)) {
    const size_t bytes = 65536, hole = 1 << 20;
    char *room = mmap(NULL, bytes + 2 * hole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(room + hole, bytes, PROT_READ | PROT_WRITE);
    getcontext(made);
    made->uc_stack.ss_sp = room + hole;
    made->uc_stack.ss_size = bytes;
    made->uc_link = NULL;
    makecontext(made, body, 0);
}

/* A frame of a size that only the run knows. */
__attribute__((noinline)) static void barrier(int bytes) {
    volatile char room[bytes];
    room[0] = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    sink += room[0];
}
static void barriers(void) {
    for (;;) {
        barrier(16);
        swapcontext(&coroutine, &main_context);
    }
}
static void sizes(void) {
    for (;;) {
        for (int i = 0; i < 10; ++i) MPI_Type_size(MPI_INT, &size_of_type);
        swapcontext(&other, &main_context);
    }
}
static void add(void *in, void *inout, int *count, MPI_Datatype *type) {
    for (int i = 0; i < *count; ++i) ((int *)inout)[i] += ((int *)in)[i];
}
static void add_and_switch(void *in, void *inout, int *count, MPI_Datatype *type) {
    add(in, inout, count, type);
    swapcontext(&main_context, &other);
}
static void add_and_call(void *in, void *inout, int *count, MPI_Datatype *type) {
    add(in, inout, count, type);
    MPI_Type_size(*type, &size_of_type);
}
static void reduce(void (*function)(void *, void *, int *, MPI_Datatype *)) {
    MPI_Op op;
    int one = 1, sum = 0, ranks;
    MPI_Comm_size(MPI_COMM_SELF, &ranks);
    MPI_Op_create(function, 1, &op);
    for (int i = 0; i < 10; ++i) {
        sum = 5;
        MPI_Reduce_local(&one, &sum, 1, MPI_INT, op);
        wrong += sum != 6;
    }
    MPI_Op_free(&op);
}

/* Called deeper than the call that was left, and higher. */
__attribute__((noinline)) static void sums(MPI_Comm comm, int deep) {
    volatile char room[deep];
    int one = 1, sum = 0, ranks;
    room[0] = 1;
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < 50; ++i) {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        wrong += sum != ranks;
    }
    sink += room[0];
}
static void jump(const char *which, int deep) {
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Request request;
    int x = 0, rank, ranks;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)jumps, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    for (volatile int i = 0; i < 3; ++i)
        if (setjmp(back_to_main) == 0) {
            if (!strcmp(which, "send")) MPI_Send(&x, 1, MPI_INT, ranks + 99, 0, comm);
            if (!strcmp(which, "bcast")) MPI_Bcast(&x, 1, MPI_INT, ranks + 99, comm);
            if (!strcmp(which, "ibcast")) MPI_Ibcast(&x, 1, MPI_INT, ranks + 99, comm, &request);
            wrong += strcmp(which, "none") != 0;
        }
    sums(comm, deep);
    if (ranks > 1 && rank < 2) MPI_Send(&x, 1, MPI_INT, 1 - rank, 3, comm);
    if (ranks > 1 && rank < 2) MPI_Recv(&x, 1, MPI_INT, 1 - rank, 3, comm, MPI_STATUS_IGNORE);
}

static void add_and_jump(void *in, void *inout, int *count, MPI_Datatype *type) { longjmp(back_to_main, 1); }
static void jump_out_of_operation(void) {
    MPI_Op op;
    int one = 1, sum = 0;
    MPI_Op_create(add_and_jump, 1, &op);
    if (setjmp(back_to_main) == 0) MPI_Allreduce(&one, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
    sums(MPI_COMM_WORLD, 16);
}

/* One function of each of two modules, the second loaded where the first was. */
static void modules(char **paths) {
    void *at[2];
    for (int m = 0; m < 2; ++m) {
        void *module = dlopen(paths[m], RTLD_NOW | RTLD_LOCAL);
        at[m] = dlsym(module, "of_module");
        for (int i = 0; i < 5; ++i) ((void (*)(void))at[m])();
        dlclose(module);
    }
    puts(at[0] == at[1] ? "same addresses" : "other addresses");
}

#define F(n)                                              \
    __attribute__((noinline)) static void from##n(void) { \
        wrapper();                                        \
        sink += n;                                        \
    }
__attribute__((noinline)) static void wrapper(void) {
    MPI_Type_size(MPI_INT, &size_of_type);
    sink++;
}
F(0)
F(1)
F(2)
F(3)
F(4)
F(5)
F(6)
F(7)
F(8)
F(9)
F(10)
F(11)

static void (*const places[])(void) = {from0, from1, from2, from3, from4,  from5,
                                       from6, from7, from8, from9, from10, from11};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const char *which = argv[1];
    make(&coroutine, barriers);
    make(&other, sizes);
    if (!strcmp(which, "grown"))
        for (int i = 0; i < 20; ++i) {
            barrier(500000);
            swapcontext(&main_context, &coroutine);
        }
    else if (!strcmp(which, "shrunk"))
        for (int i = 0; i < 20; ++i) {
            swapcontext(&main_context, &coroutine);
            barrier(500000);
        }
    else if (!strcmp(which, "switched"))
        reduce(add_and_switch);
    else if (!strcmp(which, "called"))
        reduce(add_and_call);
    else if (!strcmp(which, "operation"))
        jump_out_of_operation();
    else if (!strcmp(which, "modules"))
        modules(argv + 2);
    else if (!strcmp(which, "places"))
        for (int i = 0; i < 1200; ++i) places[i % 12]();
    else if (!strcmp(which, "sleep")) {
        printf("process %d\n", (int)getpid());
        fflush(stdout);
        sleep(1000);
    } else
        jump(which, argc > 2 ? atoi(argv[2]) : 16);
    puts(wrong ? "wrong" : "right");
    MPI_Finalize();
    return wrong != 0;
}
