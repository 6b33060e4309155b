#include "palmette/runtime/serve/on_device.hpp"

#include <algorithm>
#include <vector>

#include "palmette/runtime/serve/background.hpp"
#include "palmette/runtime/serve/nonblocking.hpp"
#include "palmette/runtime/serve/persistent.hpp"

namespace palmette::runtime {
namespace {

/// A nonblocking or persistent call on copies, by a request of palmette's or the MPI's; reused.
struct DeviceOperation final : BackgroundOperation, ProgramRequest {
    bool progress() override;
    /// Frees the device copies of a persistent operation that isn't running any more.
    void free_parts() {
        device.reset();
        free_self_tag(self_tag);
    }

    std::unique_ptr<OnDevice> device;
    MPI_Request inner = MPI_REQUEST_NULL;
    bool persistent = false;
    int self_tag = 0;
    bool running = false, copies_back = false;
    bool errors_return = false;  ///< by the communicator's error handler
};

/// Guarded by the background's lock.
std::vector<std::unique_ptr<DeviceOperation>>& operations() {
    static auto* all = new std::vector<std::unique_ptr<DeviceOperation>>;
    return *all;
}

DeviceOperation& take() {
    auto& all = operations();
    auto at = std::find_if(all.begin(), all.end(), [](const auto& one) { return one->released && !one->running; });
    if (at == all.end()) at = all.insert(all.end(), std::make_unique<DeviceOperation>());
    DeviceOperation& one = **at;
    one.released = false;
    one.persistent = one.copies_back = false;
    one.code = MPI_SUCCESS;
    return one;
}

DeviceOperation* find(MPI_Request request) {
    for (const auto& one : operations())
        if (one->persistent && !one->released && one->request == request) return one.get();
    return nullptr;
}

bool DeviceOperation::progress() {
    if (!copies_back) {
        int done = 0;
        // Not where it hasn't been started.
        if (code == MPI_SUCCESS) {
            code = PMPI_Test(&inner, &done, MPI_STATUS_IGNORE);
            if (code == MPI_SUCCESS && !done) return false;
            if (code == MPI_SUCCESS) code = take_error();
        }
        device->start_writing_back(code);
        copies_back = true;
    }
    if (!device->is_done()) return false;
    // The program's communicator may have been freed.
    code = device->finish(code, errors_return ? MPI_COMM_NULL : MPI_COMM_SELF);
    running = copies_back = false;
    if (persistent) {
        if (released) free_parts();
        complete_by_self(self_tag, code);
        return true;
    }
    device.reset();
    // It counts as outstanding until the program has completed its request, so that the wrapper there looks for it.
    if (code != MPI_SUCCESS) outstanding_operations.fetch_add(1, std::memory_order_relaxed);
    PMPI_Grequest_complete(request);
    return true;
}

}  // namespace

int no_memory_for_staging(MPI_Comm comm) {
    PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
}

int complete_on_device(std::unique_ptr<OnDevice> device, MPI_Request inner, MPI_Request* request) {
    Background& background = Background::instance();
    const auto lock = background.lock();
    DeviceOperation& one = take();
    one.errors_return = device->errors_return();
    if (const int error = start_request(one, request); error != MPI_SUCCESS) {
        one.released = true;
        // The inner call has begun and uses the copies.
        (void)device.release();
        return error;
    }
    one.device = std::move(device);
    one.inner = inner;
    one.running = true;
    background.add(one);
    return MPI_SUCCESS;
}

int start_on_device(std::unique_ptr<OnDevice> device, MPI_Request inner, MPI_Request* request) {
    const auto lock = Background::instance().lock();
    DeviceOperation& one = take();
    one.errors_return = device->errors_return();
    if (const int error = make_self_request(one.self_tag, request); error != MPI_SUCCESS) {
        one.released = true;
        PMPI_Request_free(&inner);
        return error;
    }
    one.device = std::move(device);
    one.inner = inner;
    one.request = *request;
    one.persistent = true;
    persistent_requests.fetch_add(1, std::memory_order_relaxed);
    return MPI_SUCCESS;
}

bool device_request_was_started(MPI_Request request) {
    Background& background = Background::instance();
    DeviceOperation* one = nullptr;
    {
        const auto lock = background.lock();
        one = find(request);
    }
    if (!one) return false;
    if (one->running) return true;
    one->device->restart();
    one->device->read_all();
    one->code = PMPI_Start(&one->inner);
    if (one->code == MPI_SUCCESS) persistent_was_started(one->inner);
    const auto lock = background.lock();
    one->running = true;
    background.add(*one);
    return true;
}

bool device_request_is_freed(MPI_Request request) {
    Background& background = Background::instance();
    MPI_Request inner = MPI_REQUEST_NULL;
    {
        const auto lock = background.lock();
        DeviceOperation* one = find(request);
        if (!one) return false;
        persistent_requests.fetch_sub(1, std::memory_order_relaxed);
        inner = one->inner;
        // What is running is freed when it has ended, but for the inner request: programs mustn't do so.
        if (!one->running) one->free_parts();
        one->released = true;
        if (one->running) return true;
    }
    persistent_is_freed(inner);
    PMPI_Request_free(&inner);
    return true;
}

}  // namespace palmette::runtime
