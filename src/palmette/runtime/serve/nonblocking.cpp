#include "palmette/runtime/serve/nonblocking.hpp"

namespace palmette::runtime {
namespace {

/// The error of an operation whose request this thread has just completed.
thread_local int last_error = MPI_SUCCESS;

int query(void* extra, MPI_Status* status) {
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG = MPI_ANY_TAG;
    // Not returned: the MPI would raise it on an unrelated communicator.
    status->MPI_ERROR = static_cast<const ProgramRequest*>(extra)->code;
    return MPI_SUCCESS;
}

int release(void* extra) {
    auto& one = *static_cast<ProgramRequest*>(extra);
    if (one.code != MPI_SUCCESS) {
        last_error = one.code;
        outstanding_operations.fetch_sub(1, std::memory_order_relaxed);
    }
    one.released = true;
    return MPI_SUCCESS;
}

/// MPI forbids cancelling a collective: an attempt has no effect.
int cancel(void*, int) { return MPI_SUCCESS; }

}  // namespace

int start_request(ProgramRequest& one, MPI_Request* request) {
    const int error = PMPI_Grequest_start(query, release, cancel, &one, request);
    if (error == MPI_SUCCESS) one.request = *request;
    return error;
}

int take_error() {
    const int code = last_error;
    last_error = MPI_SUCCESS;
    return code;
}

bool may_run_in_background(Call& call, Task& task) {
    const CachedPlan& plan = *task.work.plan;
    if (plan.route.relays && select::sizes_unknown(plan.key.function)) return call.refuse(Refusal::lengths_unknown);
    const auto tags = call.state().tags.take(plan.route.tags);
    if (!tags) return call.refuse(Refusal::too_many_tags, plan.route.algorithm);
    task.tags = *tags;
    return true;
}

int begin_nonblocking(Task& task, MPI_Request* request) {
    Background& background = Background::instance();
    background.wait_for_tags(*task.work.state, task.tags);
    if (OnDevice* device = OnDevice::current()) device->read_all();
    if (const int error = start_request(task, request); error != MPI_SUCCESS) {
        background.give_back(task);
        return error;
    }
    background.start(task);
    return MPI_SUCCESS;
}

void complete_nonblocking(Task& task) { PMPI_Grequest_complete(task.request); }

}  // namespace palmette::runtime
