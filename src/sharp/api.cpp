// The functions that libsharp_coll exports, under their names.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "sharp/operations.hpp"

#define PALMETTE_EXPORT extern "C" __attribute__((visibility("default")))

namespace palmette::sharp_twin {
namespace {

using namespace aggregate::sharp;

/// No exception crosses the interface.
template <class Body>
int guarded(Body body) noexcept {
    try {
        return body();
    } catch (const std::exception&) {
        return error_memory;
    }
}

template <class Body>
int on(Comm* comm, Body body) noexcept {
    if (!comm) return error_invalid;
    return guarded([&] {
        const std::lock_guard lock(comm->context->mutex);
        return body(*comm);
    });
}

int wait_for(void* handle) noexcept {
    auto* const request = static_cast<Request*>(handle);
    return on(request ? request->comm : nullptr, [&](Comm&) { return wait(request); });
}

/// A nonblocking function's blocking form.
template <class Begin>
int at_once(Begin begin) noexcept {
    void* handle = nullptr;
    const int code = begin(&handle);
    return code == success ? wait_for(handle) : code;
}

}  // namespace
}  // namespace palmette::sharp_twin

using namespace palmette::sharp_twin;
using namespace palmette::aggregate::sharp;

PALMETTE_EXPORT const Config sharp_coll_default_config;
const Config sharp_coll_default_config{nullptr, 1000, -1, 0, {}};

PALMETTE_EXPORT int sharp_coll_init(InitSpec* spec, Context** context) {
    if (!spec || !context) return error_invalid;
    return guarded([&] { return make_context(*spec, context); });
}

PALMETTE_EXPORT int sharp_coll_finalize(Context* context) {
    if (!context) return error_invalid;
    if (!context->registered.empty() || !context->comms.empty())
        std::fprintf(stderr, "SHARP twin: rank %d ends with %zu registrations and %zu groups\n", context->rank,
                     context->registered.size(), context->comms.size());
    if (const char* const told = std::getenv("SHARP_TWIN_STATISTICS"); told && *told == '1')
        std::fprintf(stderr, "twin of SHARP: rank %d has registered memory %zu times\n", context->rank,
                     static_cast<std::size_t>(context->registrations));
    delete context;
    return success;
}

PALMETTE_EXPORT int sharp_coll_caps_query(Context* context, Capabilities* capabilities) {
    if (!context || !capabilities) return error_invalid;
    describe(*context, *capabilities);
    return success;
}

PALMETTE_EXPORT int sharp_coll_progress(Context* context) {
    if (!context) return error_invalid;
    return guarded([&] {
        const std::lock_guard lock(context->mutex);
        for (Comm* comm : context->comms) progress(*comm);
        return int{success};
    });
}

PALMETTE_EXPORT int sharp_coll_comm_init(Context* context, CommSpec* spec, Comm** comm) {
    if (!context || !spec || !comm) return error_invalid;
    return guarded([&] { return make_comm(*context, *spec, comm); });
}

PALMETTE_EXPORT int sharp_coll_comm_destroy(Comm* comm) {
    if (!comm) return error_invalid;
    comm->client->leave();
    std::erase(comm->context->comms, comm);
    delete comm;
    return success;
}

PALMETTE_EXPORT int sharp_coll_do_barrier_nb(Comm* comm, void** handle) {
    return on(comm, [&](Comm& one) { return begin_barrier(one, handle); });
}
PALMETTE_EXPORT int sharp_coll_do_barrier(Comm* comm) {
    return at_once([&](void** handle) { return sharp_coll_do_barrier_nb(comm, handle); });
}

PALMETTE_EXPORT int sharp_coll_do_allreduce_nb(Comm* comm, ReduceSpec* spec, void** handle) {
    return on(comm, [&](Comm& one) { return begin_reduction(one, Kind::allreduce, *spec, handle); });
}
PALMETTE_EXPORT int sharp_coll_do_allreduce(Comm* comm, ReduceSpec* spec) {
    return at_once([&](void** handle) { return sharp_coll_do_allreduce_nb(comm, spec, handle); });
}

PALMETTE_EXPORT int sharp_coll_do_reduce_nb(Comm* comm, ReduceSpec* spec, void** handle) {
    return on(comm, [&](Comm& one) { return begin_reduction(one, Kind::reduce, *spec, handle); });
}
PALMETTE_EXPORT int sharp_coll_do_reduce(Comm* comm, ReduceSpec* spec) {
    return at_once([&](void** handle) { return sharp_coll_do_reduce_nb(comm, spec, handle); });
}

PALMETTE_EXPORT int sharp_coll_do_reduce_scatter_nb(Comm* comm, ReduceSpec* spec, void** handle) {
    return on(comm, [&](Comm& one) { return begin_reduction(one, Kind::reduce_scatter, *spec, handle); });
}
PALMETTE_EXPORT int sharp_coll_do_reduce_scatter(Comm* comm, ReduceSpec* spec) {
    return at_once([&](void** handle) { return sharp_coll_do_reduce_scatter_nb(comm, spec, handle); });
}

PALMETTE_EXPORT int sharp_coll_do_bcast_nb(Comm* comm, BcastSpec* spec, void** handle) {
    return on(comm, [&](Comm& one) { return begin_bcast(one, *spec, handle); });
}
PALMETTE_EXPORT int sharp_coll_do_bcast(Comm* comm, BcastSpec* spec) {
    return at_once([&](void** handle) { return sharp_coll_do_bcast_nb(comm, spec, handle); });
}

PALMETTE_EXPORT int sharp_coll_do_allgather_nb(Comm* comm, GatherSpec* spec, void** handle) {
    return on(comm, [&](Comm& one) { return begin_allgather(one, *spec, handle); });
}
PALMETTE_EXPORT int sharp_coll_do_allgather(Comm* comm, GatherSpec* spec) {
    return at_once([&](void** handle) { return sharp_coll_do_allgather_nb(comm, spec, handle); });
}

PALMETTE_EXPORT int sharp_coll_req_test(void* handle) {
    auto* const request = static_cast<Request*>(handle);
    return on(request ? request->comm : nullptr, [&](Comm&) { return test(*request) ? 1 : 0; });
}

PALMETTE_EXPORT int sharp_coll_req_wait(void* handle) { return wait_for(handle); }

PALMETTE_EXPORT int sharp_coll_req_free(void* handle) {
    auto* const request = static_cast<Request*>(handle);
    return on(request ? request->comm : nullptr, [&](Comm& comm) {
        if (!request->complete) std::erase(comm.waiting, request);
        delete request;
        return int{success};
    });
}

PALMETTE_EXPORT int sharp_coll_reg_mr(Context* context, void* data, std::size_t bytes, void** memory) {
    if (!context || !data || !memory) return error_invalid;
    return guarded([&] {
        const std::lock_guard lock(context->mutex);
        if (const int code = context->faults.at("register", context->rank)) return code;
        context->registered[++context->registrations] = {static_cast<const char*>(data), bytes};
        *memory = reinterpret_cast<void*>(context->registrations);
        return int{success};
    });
}

/// Memory of devices isn't read through a descriptor.
PALMETTE_EXPORT int sharp_coll_reg_mr_v2(Context* context, void* data, std::size_t bytes, const void* /*parameters*/,
                                         void** memory) {
    return sharp_coll_reg_mr(context, data, bytes, memory);
}

PALMETTE_EXPORT int sharp_coll_dereg_mr(Context* context, void* memory) {
    if (!context) return error_invalid;
    const std::lock_guard lock(context->mutex);
    return context->registered.erase(reinterpret_cast<std::uintptr_t>(memory)) > 0 ? int{success} : int{error_invalid};
}

PALMETTE_EXPORT int sharp_coll_print_config(std::FILE* stream, int /*flags*/, const char* /*program*/) {
    std::fprintf(stream,
                 "SHARP_TWIN_DAEMON, SHARP_TWIN_TOKEN, SHARP_TWIN_STRICT, SHARP_TWIN_STATISTICS, SHARP_TWIN_FAULT\n");
    return success;
}

PALMETTE_EXPORT int sharp_coll_dump_stats(Context* context) { return context ? success : error_invalid; }

PALMETTE_EXPORT const char* sharp_coll_strerror(int error) {
    switch (error) {
        case success:
            return "success";
        case error_unsupported:
            return "not supported";
        case error_memory:
            return "no memory";
        case error_group_alloc:
            return "no group can be allocated";
        case error_tree_connect:
            return "no connection to a tree";
        case error_group_join:
            return "the group can't be joined";
        case error_quota:
            return "over the quota";
        case error_session:
            return "the aggregation manager isn't reached";
        case error_device:
            return "no usable device";
        case error_invalid:
            return "an invalid argument";
        case error_job_create:
            return "no job can be created";
        case error_tree_info:
        case error_no_tree:
            return "no tree is available";
        case error_out_of_band:
            return "an out-of-band call failed";
        case error_lock_failed:
            return "the tree's lock is taken";
        case error_lock_denied:
            return "locks aren't permitted";
        case error_no_resource:
            return "no resource is left";
        default:
            return "an error";
    }
}
