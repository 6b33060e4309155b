// What isn't a message or a collective: windows, recording that is switched off, children, coroutines, threads,
// sessions, Fortran's names of MPI's functions.
#pragma once

#include <dlfcn.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <thread>

#include "communicators.hpp"
#include "errors.hpp"
#include "fortran.hpp"

namespace oracle {

inline void make_surroundings() {
    make_handlers();
    find_fortran();
}

#if defined(MPI_SESSION_NULL) && MPI_VERSION >= 4
/// A communicator that comes from no other one.
inline void session(Run& run) {
    const Message m = [&] {
        Comm& comm = run.add(run.comms.front().members);
        Message drawn = run.message(comm, 1, true);
        run.comms.pop_back();
        return drawn;
    }();
    MPI_Session own = MPI_SESSION_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    if (!has_quick_sessions) return;
    made(run.account, {"MPI_Session_init", none}, MPI_Session_init, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &own);
    made(run.account, {"MPI_Group_from_session_pset", none}, MPI_Group_from_session_pset, own, "mpi://WORLD", &group);
    for (int i = 0; i < 2; ++i) {
        Comm& comm = run.add(run.comms.front().members);
        made(run.account, {"MPI_Comm_create_from_group", none}, MPI_Comm_create_from_group, group, "palmette.oracle",
             MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm.handle);
        Message own_message = m;
        own_message.comm = &comm;
        own_message.number = run.again(own_message);
        start_receive(run, own_message);
        send_started(run, own_message);
        made(run.account, {"MPI_Barrier", comm.label, 0, none, unsaid, ++comm.collectives}, MPI_Barrier, comm.handle);
        complete_all(run);
        free_one(run, std::prev(run.comms.end()));
    }
    PMPI_Group_free(&group);
    made(run.account, {"MPI_Session_finalize", none}, MPI_Session_finalize, &own);
}
#endif

/// Puts and gets, between fences.
inline void one_sided(Run& run) {
    Comm* const comm = run.any_intra();
    const int count = run.rng.below(20);
    const int target = run.rng.below(comm->size());
    if (!comm->has_me()) return;
    int* const memory = reinterpret_cast<int*>(run.buffer());
    int* const data = reinterpret_cast<int*>(run.buffer());
    MPI_Win window = MPI_WIN_NULL;
    made(run.account, {"MPI_Win_create", comm->label}, MPI_Win_create, static_cast<void*>(memory), MPI_Aint{4096}, 4,
         MPI_INFO_NULL, comm->handle, &window);
    made(run.account, {"MPI_Win_fence", none}, MPI_Win_fence, 0, window);
    if (comm->rank % 2 == 0)
        made(run.account, {"MPI_Put", none, 4LL * count, target}, MPI_Put, static_cast<const void*>(data), count,
             MPI_INT, target, MPI_Aint{64 * comm->rank}, count, MPI_INT, window);
    else
        made(run.account, {"MPI_Get", none, 4LL * count, target}, MPI_Get, static_cast<void*>(data), count, MPI_INT,
             target, MPI_Aint{512}, count, MPI_INT, window);
    made(run.account, {"MPI_Win_fence", none}, MPI_Win_fence, 0, window);
    made(run.account, {"MPI_Win_free", none}, MPI_Win_free, &window);
}

/// Calls that aren't recorded. The matrix counts their messages.
inline void switched_off(Run& run) {
    Comm* const comm = run.any_intra();
    complete_all(run);
    PMPI_Barrier(MPI_COMM_WORLD);
    if (!comm->has_me()) return;
    MPI_Pcontrol(0);
    const int to = (comm->rank + 1) % comm->size();
    const int from = (comm->rank + comm->size() - 1) % comm->size();
    int both[2] = {};
    MPI_Sendrecv(&both[0], 1, MPI_INT, to, 1, &both[1], 1, MPI_INT, from, 1, comm->handle, MPI_STATUS_IGNORE);
    sent_to.message(world_of(*comm, to), 4);
    MPI_Barrier(comm->handle);
    MPI_Pcontrol(1);
}

/// A child that calls nothing of MPI.
inline void child(Run& run) {
    const int who = run.rng.below(world_size);
    if (who != world_rank) return;
    const pid_t made = fork();
    if (made == 0) _exit(0);
    int status = 0;
    if (made > 0) waitpid(made, &status, 0);
}

inline ucontext_t main_stack, own_stack;
inline Run* in_it = nullptr;

/// Takes a step from a frame whose size is known at run time only.
[[gnu::noinline]] inline int with_array(Run& run, int length, void (*step)(Run&)) {
    auto* const array = static_cast<volatile char*>(__builtin_alloca(static_cast<std::size_t>(length)));
    array[length - 1] = 1;
    step(run);
    return array[length - 1];
}

inline void coroutine() {
    with_array(*in_it, 100, local);
    swapcontext(&own_stack, &main_stack);
    with_array(*in_it, 3000, one_message);
    swapcontext(&own_stack, &main_stack);
    with_array(*in_it, 50, collective);
}

/// Steps on another stack and on the main one by turns.
inline void in_coroutine(Run& run) {
    in_it = &run;
    constexpr std::size_t bytes = 256 << 10;
    getcontext(&own_stack);
    own_stack.uc_stack.ss_sp = run.buffer(bytes);
    own_stack.uc_stack.ss_size = bytes;
    own_stack.uc_link = &main_stack;
    makecontext(&own_stack, coroutine, 0);
    swapcontext(&main_stack, &own_stack);
    with_array(run, 700, one_message);
    swapcontext(&main_stack, &own_stack);
    with_array(run, 20, local);
    swapcontext(&main_stack, &own_stack);
}

/// Several threads, each with a communicator of its own; false: one has failed.
template <class Program>
bool in_threads(Run& run, int number, Program program) {
    const int count = run.rng.between(2, 3);
    std::vector<MPI_Comm> bases(static_cast<std::size_t>(count), MPI_COMM_NULL);
    Comm& world = run.comms.front();
    std::list<Run> runs;
    for (int t = 0; t < count; ++t) {
        const int label = run.comms.front().label + 10 + number % 8000 * 400 + 200 + 60 * t;
        made(run.account, {"MPI_Comm_dup", world.label}, MPI_Comm_dup, world.handle,
             &bases[static_cast<std::size_t>(t)]);
        Run& own =
            runs.emplace_back(new_account(), 7, static_cast<std::uint64_t>(number) * 8 + 1000003U + t, label + 1);
        own.base_label = label;
    }
    std::vector<std::thread> threads;
    int t = 0;
    for (Run& own : runs) {
        MPI_Comm base = bases[static_cast<std::size_t>(t)];
        threads.emplace_back([&own, &program, base, number, t] { program(own, 3 * number + t, base, own.base_label); });
        ++t;
    }
    for (std::thread& thread : threads) thread.join();
    PMPI_Barrier(MPI_COMM_WORLD);
    bool good = true;
    for (const Run& own : runs) good = good && !own.failed;
    for (MPI_Comm& base : bases) made(run.account, {"MPI_Comm_free", none}, MPI_Comm_free, &base);
    return good;
}

}  // namespace oracle
