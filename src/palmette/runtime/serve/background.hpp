// Collectives that run while the program does something else.
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

/// Handles of the program's that an operation needs to its end, although the program may free them right after the
/// start.
struct Handles {
    std::array<MPI_Datatype, 2> types{MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    MPI_Op op = MPI_OP_NULL;
    bool any_type = false;  ///< a type for each rank: taken to be all types that there are

    static Handles of(const CallArguments& arguments) {
        const bool any = arguments.send.form == Side::Form::typed;
        return {{arguments.send.type, arguments.recv.type}, arguments.op, any};
    }

    bool has_type(MPI_Datatype type) const { return any_type || types[0] == type || types[1] == type; }
    bool has_op(MPI_Op other) const { return op == other; }
};

/// One such operation with all that it needs. Stays where it is, since its parts point at each other, and is used
/// again.
struct Task {
    explicit Task(MpiExecutor its) : executor(std::move(its)) {}

    /// Not where the program has freed its communicator meanwhile, whose handle another one may have now.
    bool runs_on(MPI_Comm comm) const {
        return work.comm == comm && !work.state->freed.load(std::memory_order_acquire);
    }

    std::optional<Call> call;
    Work work;
    MpiExecutor executor;
    Handles handles;
    TagSpace::Range tags;
    double begin = 0;
    int code = MPI_SUCCESS;
    bool running = false;
    bool persistent = false;
    MPI_Request request = MPI_REQUEST_NULL;  ///< the program's
    int self_tag = 0;                        ///< persistent: of the message that completes the request
    /// The program's request is gone, so that this may be used again. Set inside of the MPI, with whatever it has
    /// locked.
    std::atomic<bool> released{true};
};

/// Another operation that goes on with them: a composition.
class InBackground {
  public:
    virtual ~InBackground() = default;
    /// Lets it go on; whether it has ended.
    virtual bool progress() = 0;
};

/// All such operations of the process. Locks itself; one thread at a time lets them go on, whoever waits for what.
class Background {
  public:
    static Background& instance();

    std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

    // The functions below need the lock.

    /// A task to fill.
    Task& take(Communicator& state);
    /// One that was taken and didn't start.
    void give_back(Task& task);
    /// Opens the task's work and begins with it. What goes wrong becomes the task's code.
    void start(Task& task);
    /// Lets all running tasks go on.
    void progress_all();
    /// Waits until nothing that runs on that communicator has one of these tags.
    void wait_for_tags(const Communicator& state, const TagSpace::Range& tags);

    /// Another operation that runs, until its `progress` says that it has ended.
    void add(InBackground& other);
    /// Takes it out, where nothing else runs: its caller lets it go on. False: it stays.
    bool take_out_alone(const InBackground& other);

    // These take it themselves.

    /// Waits for every task that runs on `comm`; MPI_COMM_NULL: for all. Compositions end where the program waits for
    /// them.
    void finish(MPI_Comm comm);
    /// Whether a task that isn't over, persistent ones included, fits what `is_it` asks for.
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
    std::vector<InBackground*> others_;
};

/// Fills a task with a call; where it `may` go on by itself, `begin` gives the program a request for it. Nothing when
/// the MPI must do it; then the reason has been
/// counted. All ranks come to the same answer. Local. Both functions are called with the lock.
std::optional<int> begin_task(const CallArguments& arguments, MPI_Request* request, bool (*may)(Call&, Task&),
                              int (*begin)(Task&, MPI_Request*));

/// After a request was completed by a call of the program's: the error of an operation of ours that ended with it,
/// once. The error handler has been called.
int take_error();

/// A blocking collective that goes to the MPI: there nothing of ours goes on, so what runs on the same communicator
/// ends first. The other ranks have started it too, before they can come to this call.
inline void before_blocking(MPI_Comm comm) {
    if (has_outstanding()) Background::instance().finish(comm);
}

}  // namespace palmette::runtime
