// Calls on device memory: made again with copies in the host's memory, whoever serves them then.
#pragma once

#include <mpi.h>

#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "palmette/runtime/data/on_device.hpp"

namespace palmette::runtime {

/// Raises MPI_ERR_NO_MEM on `comm`: there is no memory for a copy. Returns the code.
int no_memory_for_staging(MPI_Comm comm);

/// A blocking call. Nothing where none of its buffers lies on a device. `again(device)` makes it with the addresses
/// that `device` has for its buffers; where it turns out to be the MPI's, which takes such memory, `direct()` has the
/// MPI make it with the program's. `inside`: this comes from inside of palmette.
template <class Again, class Direct>
std::optional<int> on_device(const CallArguments& arguments, bool inside, Again again, Direct direct) {
    if (inside || OnDevice::current()) return std::nullopt;
    try {
        OnDevice device(arguments);
        if (!device.any()) return std::nullopt;
        device.make_current();
        int code = again(device);
        if (device.is_left()) {
            device.end_current();
            code = direct();
        }
        return device.close(code);
    } catch (const std::bad_alloc&) {
        return no_memory_for_staging(arguments.comm);
    }
}

/// Takes over a call that `inner` is outstanding for, and gives the program a request for all of it.
int complete_on_device(std::unique_ptr<OnDevice> device, MPI_Request inner, MPI_Request* request);
int start_on_device(std::unique_ptr<OnDevice> device, MPI_Request inner, MPI_Request* request);

/// Nonblocking and persistent ones: the copies are the operation's, and `again(device, inner)` starts or makes it. The
/// program's request completes when the output has been copied back. `direct()`: as above, with the program's request.
template <class Again, class Direct>
std::optional<int> nonblocking_on_device(const CallArguments& arguments, bool inside, MPI_Request* request, Again again,
                                         Direct direct) {
    if (inside || OnDevice::current()) return std::nullopt;
    try {
        auto device = std::make_unique<OnDevice>(arguments);
        if (!device->any()) return std::nullopt;
        MPI_Request inner = MPI_REQUEST_NULL;
        device->make_current();
        const int code = again(*device, &inner);
        device->end_current();
        if (device->is_left()) return device->finish(direct(), arguments.comm);
        if (code != MPI_SUCCESS) return code;
        return complete_on_device(std::move(device), inner, request);
    } catch (const std::bad_alloc&) {
        return no_memory_for_staging(arguments.comm);
    }
}
template <class Again, class Direct>
std::optional<int> persistent_on_device(const CallArguments& arguments, bool inside, MPI_Request* request, Again again,
                                        Direct direct) {
    if (inside || OnDevice::current()) return std::nullopt;
    try {
        auto device = std::make_unique<OnDevice>(arguments);
        if (!device->any()) return std::nullopt;
        MPI_Request inner = MPI_REQUEST_NULL;
        device->make_current();
        const int code = again(*device, &inner);
        device->end_current();
        if (device->is_left()) return device->finish(direct(), arguments.comm);
        if (code != MPI_SUCCESS) return code;
        return start_on_device(std::move(device), inner, request);
    } catch (const std::bad_alloc&) {
        return no_memory_for_staging(arguments.comm);
    }
}

/// The program has started, or is about to free, a persistent request; false: it isn't one of these.
bool device_request_was_started(MPI_Request request);
bool device_request_is_freed(MPI_Request request);

}  // namespace palmette::runtime
