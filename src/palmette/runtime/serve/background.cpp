#include "palmette/runtime/serve/background.hpp"

#include <algorithm>
#include <new>

#include "palmette/node/spin_wait.hpp"
#include "palmette/runtime/call/prepare.hpp"
#include "palmette/runtime/serve/checked.hpp"
#include "palmette/runtime/serve/nonblocking.hpp"
#include "palmette/runtime/serve/persistent.hpp"
#include "palmette/runtime/serve/postponed.hpp"
#include "palmette/runtime/state/bypass.hpp"

namespace palmette::runtime {

Background& Background::instance() {
    // Never destroyed, as Process.
    static Background* background = new Background;
    return *background;
}

Task& Background::take(Communicator& state) {
    if (idle_.empty())
        for (const auto& task : tasks_)
            if (!task->running && task->released) idle_.push_back(task.get());
    if (idle_.empty()) {
        tasks_.push_back(std::make_unique<Task>(state.make_executor()));
        idle_.push_back(tasks_.back().get());
    }
    Task& task = *idle_.back();
    idle_.pop_back();
    task.released = false;
    task.persistent = false;
    task.request = MPI_REQUEST_NULL;
    task.code = MPI_SUCCESS;
    return task;
}

void Background::give_back(Task& task) {
    task.released = true;
    idle_.push_back(&task);
}

void Background::start(Task& task) {
    task.begin = task.call->begins(task.work);
    task.code = MPI_SUCCESS;
    task.running = true;
    ++task.work.plan->users;
    ++task.work.state->users;
    running_.push_back(&task);
    outstanding_operations.fetch_add(1, std::memory_order_relaxed);
    close_bypasses();
    bool done = false;
    try {
        task.code = task.work.open();
        if (task.code == MPI_SUCCESS) {
            task.executor.prepare(task.work.bound());
            execute::Environment environment = task.work.environment(task.executor);
            environment.first_tag = task.tags.first;
            task.code = task.executor.begin(task.work.bound(), environment);
            if (task.code == MPI_SUCCESS) task.code = task.executor.progress(done);
            task.code = mpi_code(task.code);
        }
    } catch (const std::bad_alloc&) {
        task.executor.abandon();
        task.code = MPI_ERR_NO_MEM;
    }
    if (done || task.code != MPI_SUCCESS) {
        std::erase(running_, &task);
        finish_task(task);
    }
}

void Background::finish_task(Task& task) {
    if (task.code == MPI_SUCCESS) task.code = task.work.close();
    task.running = false;
    // An error of the arguments was raised when the operation was begun.
    task.work.fault = MPI_SUCCESS;
    task.code = task.call->close(task.work, task.code, task.begin);
    --task.work.plan->users;
    Process::instance().release_user(*task.work.state);
    // A failed nonblocking one counts as outstanding until the program has completed its request, so that the wrapper
    // there checks for the error.
    if (task.code == MPI_SUCCESS || task.persistent) outstanding_operations.fetch_sub(1, std::memory_order_relaxed);
    if (task.persistent)
        complete_persistent(task);
    else
        complete_nonblocking(task);
}

void Background::progress_all() {
    // A task that completes may invoke the program's error handler, which may start others.
    for (std::size_t i = 0; i < running_.size();) {
        Task& task = *running_[i];
        bool done = false;
        task.code = mpi_code(task.executor.progress(done));
        if (!done) {
            ++i;
            continue;
        }
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
        finish_task(task);
    }
    std::erase_if(others_, [](BackgroundOperation* other) {
        const bool ended = other->progress();
        if (ended) outstanding_operations.fetch_sub(1, std::memory_order_relaxed);
        return ended;
    });
}

void Background::add(BackgroundOperation& other) {
    others_.push_back(&other);
    outstanding_operations.fetch_add(1, std::memory_order_relaxed);
    close_bypasses();
}

bool Background::remove_if_alone(const BackgroundOperation& other) {
    if (!running_.empty() || others_.size() != 1 || others_.front() != &other) return false;
    others_.clear();
    outstanding_operations.fetch_sub(1, std::memory_order_relaxed);
    return true;
}

void progress_background() {
    // A user-defined reduction that is called from here must not re-enter.
    thread_local bool within = false;
    Background& background = Background::instance();
    if (within) return;
    if (has_postponed()) [[unlikely]]
        settle_postponed(nullptr);
    const std::unique_lock lock(background.mutex_, std::try_to_lock);
    if (!lock) return;
    within = true;
    background.progress_all();
    within = false;
}

void Background::wait_for_tags(const Communicator& state, const TagSpace::Range& tags) {
    const auto taken = [&] {
        return std::any_of(running_.begin(), running_.end(),
                           [&](const Task* task) { return task->work.state == &state && task->tags.overlaps(tags); });
    };
    node::SpinWait spin_wait(1, 1);
    for (spin_wait.reset(); taken(); spin_wait.pause()) progress_all();
}

void Background::finish(MPI_Comm comm) {
    wait_until([&] {
        const std::lock_guard guard(mutex_);
        return std::none_of(running_.begin(), running_.end(),
                            [&](const Task* task) { return comm == MPI_COMM_NULL || task->runs_on(comm); });
    });
}

std::optional<int> begin_task(const CallArguments& arguments, MPI_Request* request, bool (*may)(Call&, Task&),
                              int (*begin)(Task&, MPI_Request*)) {
    if (has_postponed()) [[unlikely]]
        settle_postponed(nullptr);
    if (checks()) [[unlikely]] {
        const auto kind = may == may_be_persistent ? CheckedAs::persistent : CheckedAs::nonblocking;
        if (const int code = check_started(arguments, kind)) {
            *request = MPI_REQUEST_NULL;
            return code;
        }
    }
    Call call(arguments.function, arguments.comm, arguments.blocking);
    if (!call.open()) return std::nullopt;
    if (call.devices_are_the_mpis()) [[unlikely]] {
        call.refuse_always(Refusal::devices_of_the_mpi, {});
        return std::nullopt;
    }
    Background& background = Background::instance();
    const auto lock = background.lock();
    Task& task = background.take(call.state());
    task.handles = Handles::of(arguments);
    if (!prepare(call, task.work, arguments) || !may(call, task)) {
        background.give_back(task);
        return std::nullopt;
    }
    task.call.emplace(call);
    const int fault = task.work.fault;
    if (fault != MPI_SUCCESS) {
        // The program may free its buffers and lists as soon as it has got the error.
        task.work.send.detach();
        task.work.recv.detach_and_discard();
    }
    const int code = begin(task, request);
    task.work.arguments = nullptr;
    if (fault == MPI_SUCCESS || code != MPI_SUCCESS) return code;
    // It runs on, since the other ranks depend on it; the program gets the error at once, and no request.
    PMPI_Request_free(request);
    return call.raise(arguments.comm, fault);
}

}  // namespace palmette::runtime
