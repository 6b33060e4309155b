// Background progress of nonblocking and persistent collectives, and of compositions.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "palmette/runtime/call/call.hpp"
#include "palmette/runtime/data/call_arguments.hpp"
#include "palmette/runtime/state/tag_space.hpp"
#include "palmette/runtime/state/work.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {

/// Handles of the program's that an operation needs until completion, although the program may free them right after
/// the start.
struct Handles {
    std::array<MPI_Datatype, 2> types{MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    MPI_Op op = MPI_OP_NULL;
    bool any_type = false;  ///< a type for each rank: assumed to use all types

    static Handles of(const CallArguments& arguments) {
        const bool any = arguments.send.form == Side::Form::typed;
        return {{arguments.send.type, arguments.recv.type}, arguments.op, any};
    }

    bool has_type(MPI_Datatype type) const { return any_type || types[0] == type || types[1] == type; }
    bool has_op(MPI_Op other) const { return op == other; }
};

/// A request that the program has for an operation: a generalized one, or a persistent receive.
struct ProgramRequest {
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_SUCCESS;  ///< of the operation
    /// Set when its request has been freed, so that this object may be reused; the MPI may hold locks meanwhile.
    std::atomic<bool> released{true};
};

/// One such operation with its state. Has a stable address, since its parts point at each other, and is reused.
struct Task : ProgramRequest {
    explicit Task(MpiExecutor its) : executor(std::move(its)) {}

    /// False where the program has freed the communicator meanwhile: its handle may have been reused.
    bool runs_on(MPI_Comm comm) const {
        return work.comm == comm && !work.state->freed.load(std::memory_order_acquire);
    }

    std::optional<Call> call;
    Work work;
    MpiExecutor executor;
    Handles handles;
    TagSpace::Range tags;
    double begin = 0;
    bool running = false;
    bool persistent = false;
    int self_tag = 0;  ///< persistent: tag of the message that completes the request
};

/// Another operation that is progressed with them: a composition.
class BackgroundOperation {
  public:
    virtual ~BackgroundOperation() = default;
    /// Progresses it; returns whether it has completed.
    virtual bool progress() = 0;
};

/// All such operations of the process, under one lock: one thread at a time progresses them all, whichever it waits
/// for.
class Background {
  public:
    static Background& instance();

    std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

    // The functions below need the lock.

    /// A free task.
    Task& take(Communicator& state);
    /// Returns a task that was taken and not started.
    void give_back(Task& task);
    /// Opens and starts the task's work. An error becomes the task's code.
    void start(Task& task);
    /// Progresses all outstanding operations.
    void progress_all();
    /// Waits until no outstanding task on that communicator has one of these tags.
    void wait_for_tags(const Communicator& state, const TagSpace::Range& tags);

    /// Adds another outstanding operation, until its `progress` returns true.
    void add(BackgroundOperation& other);
    /// Removes it if nothing else is outstanding: its caller progresses it then. False: it stays.
    bool remove_if_alone(const BackgroundOperation& other);

    // These take the lock themselves.

    /// Waits for every outstanding task on `comm`; MPI_COMM_NULL: for all. Compositions complete where the program
    /// waits for them.
    void finish(MPI_Comm comm);
    /// Whether `is_it` holds for a task that is outstanding, or persistent and not freed.
    template <class IsIt>
    bool any_alive(IsIt is_it) {
        const std::lock_guard guard(mutex_);
        for (const auto& task : tasks_)
            if ((task->running || (task->persistent && !task->released)) && is_it(*task)) return true;
        return false;
    }

  private:
    friend void progress_background();
    void finish_task(Task& task);

    std::mutex mutex_;
    std::vector<std::unique_ptr<Task>> tasks_;
    std::vector<Task*> idle_;
    std::vector<Task*> running_;  ///< in the order of their starts
    std::vector<BackgroundOperation*> others_;
};

/// Prepares a task for a call; where it `may` run in the background, `begin` gives the program a request for it.
/// Nothing where the call is left to the MPI; the reason has been counted. The result is the same on all ranks. Local.
/// Both functions are called with the lock held.
std::optional<int> begin_task(const CallArguments& arguments, MPI_Request* request, bool (*may)(Call&, Task&),
                              int (*begin)(Task&, MPI_Request*));

/// After a call of the program's has completed a request: the error of palmette's operation behind it, returned once.
/// The error handler has been called.
int take_error();

/// Before a blocking collective, which doesn't progress palmette's operations: completes those that are outstanding on
/// the same communicator, and has the data of device buffers where the MPI reads it. The other ranks have started them,
/// too, before they can come to this call.
inline void before_blocking(MPI_Comm comm) {
    if (OnDevice* device = OnDevice::current()) [[unlikely]]
        device->read_all();
    if (has_outstanding()) Background::instance().finish(comm);
}

// Before the MPI makes a call. True: it isn't to be made here, since `on_device` has the MPI make it with the program's
// own buffers.

inline bool blocking_is_left(MPI_Comm comm) {
    const bool left = OnDevice::current() && OnDevice::current()->leave_to_mpi();
    before_blocking(comm);
    return left;
}
inline bool nonblocking_is_left() {
    OnDevice* const device = OnDevice::current();
    if (!device) [[likely]]
        return false;
    if (device->leave_to_mpi()) return true;
    device->read_all();
    return false;
}
inline bool persistent_is_left() { return OnDevice::current() && OnDevice::current()->leave_to_mpi(); }

}  // namespace palmette::runtime
