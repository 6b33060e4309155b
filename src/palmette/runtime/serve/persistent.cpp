#include "palmette/runtime/serve/persistent.hpp"

#include <algorithm>
#include <vector>

#include "palmette/runtime/neighbours/neighbours.hpp"
#include "palmette/runtime/serve/on_device.hpp"

namespace palmette::runtime {
namespace {

/// The requests that the program holds, the free tags, and where the messages that complete them go. Guarded by the
/// background's lock.
struct Table {
    MPI_Comm self = MPI_COMM_NULL;  ///< of this process alone; carries no other messages
    std::vector<Task*> tasks;
    std::vector<int> free_tags;
    int next_tag = 0;
    std::uint64_t ends = 0;  ///< Process::ends() when `self` was made

    Task* find(MPI_Request request) const {
        const auto at =
            std::find_if(tasks.begin(), tasks.end(), [&](const Task* task) { return task->request == request; });
        return at == tasks.end() ? nullptr : *at;
    }
    int take_tag() {
        if (free_tags.empty()) return next_tag++;
        const int tag = free_tags.back();
        free_tags.pop_back();
        return tag;
    }
};

Table& table() {
    static Table* it = new Table;
    return *it;
}

/// Local: only this process takes part.
int open_self(Table& all) {
    const std::uint64_t ends = Process::instance().ends();
    if (all.self != MPI_COMM_NULL && all.ends == ends) return MPI_SUCCESS;
    all.ends = ends;
    MPI_Group group = MPI_GROUP_NULL;
    if (const int error = PMPI_Comm_group(MPI_COMM_SELF, &group); error != MPI_SUCCESS) return error;
    const int error = PMPI_Comm_create(MPI_COMM_SELF, group, &all.self);
    PMPI_Group_free(&group);
    if (error == MPI_SUCCESS) PMPI_Comm_set_errhandler(all.self, MPI_ERRORS_RETURN);
    return error;
}

}  // namespace

void make_ready(const CallArguments& arguments) {
    if (!select::is_neighbourhood(arguments.function)) return;
    Refusal refusal = Refusal::no_state;
    if (Communicator* state = Process::instance().communicator(arguments.comm, refusal))
        neighbours_of(*state, arguments.comm);
}

bool may_be_persistent(Call& call, Task& task) {
    const CachedPlan& plan = *task.work.plan;
    if (plan.route.relays && select::sizes_unknown(plan.key.function)) return call.refuse(Refusal::lengths_unknown);
    // Ranks may start several in any order, so each has tags of its own for good.
    const auto tags = call.state().tags.keep(plan.route.tags);
    if (!tags) return call.refuse(Refusal::too_many_tags, plan.route.algorithm);
    task.tags = *tags;
    // Ranks that start it later would wait for this rank, which has nothing to start. Its tags stay reserved, so that
    // those of the next operation are the same on all ranks.
    if (task.work.fault != MPI_SUCCESS) return call.refuse(Refusal::erroneous_arguments);
    task.work.send.copy_lists();
    task.work.recv.copy_lists();
    return true;
}

int make_persistent(Task& task, MPI_Request* request) {
    Table& all = table();
    if (const int error = make_self_request(task.self_tag, request); error != MPI_SUCCESS) {
        Background::instance().give_back(task);
        return error;
    }
    task.request = *request;
    task.persistent = true;
    ++task.work.plan->users;
    ++task.work.state->users;
    all.tasks.push_back(&task);
    persistent_requests.fetch_add(1, std::memory_order_relaxed);
    return MPI_SUCCESS;
}

int make_self_request(int& tag, MPI_Request* request) {
    Table& all = table();
    tag = all.take_tag();
    const int error = open_self(all);
    return error == MPI_SUCCESS ? PMPI_Recv_init(nullptr, 0, MPI_BYTE, 0, tag, all.self, request) : error;
}

void complete_by_self(int tag, int code) {
    // The receive is posted already, so this doesn't block. A byte too many signals an error (truncation).
    const char byte = 0;
    PMPI_Send(&byte, code == MPI_SUCCESS ? 0 : 1, MPI_BYTE, 0, tag, table().self);
}

void free_self_tag(int tag) { table().free_tags.push_back(tag); }

void persistent_was_started(MPI_Request request) {
    Background& background = Background::instance();
    {
        const auto lock = background.lock();
        if (Task* task = table().find(request)) {
            if (!task->running) background.start(*task);
            return;
        }
    }
    device_request_was_started(request);
}

void persistent_is_freed(MPI_Request request) {
    if (device_request_is_freed(request)) return;
    Background& background = Background::instance();
    const auto lock = background.lock();
    Table& all = table();
    Task* task = all.find(request);
    if (!task) return;
    // One that is still outstanding is reused when it has completed, see Background::take.
    all.free_tags.push_back(task->self_tag);
    std::erase(all.tasks, task);
    --task->work.plan->users;
    Process::instance().release_user(*task->work.state);
    persistent_requests.fetch_sub(1, std::memory_order_relaxed);
    task->released = true;
}

void complete_persistent(Task& task) { complete_by_self(task.self_tag, task.code); }

}  // namespace palmette::runtime
