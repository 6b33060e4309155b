// Wrappers that complete and start requests: they progress collectives in the background while the program waits or
// tests.
//
// The requests of these are the MPI's own kind (generalized ones, or persistent receives), so that arrays, null and
// inactive requests and statuses are handled by the MPI. Waiting becomes polling as long as any operation of ours is
// outstanding.
#include <algorithm>
#include <array>
#include <type_traits>

#include "palmette/interpose/guard.hpp"
#include "palmette/interpose/next.hpp"
#include "palmette/interpose/wrappers.hpp"
#include "palmette/runtime/serve/background.hpp"
#include "palmette/runtime/serve/persistent.hpp"

namespace palmette::interpose {
namespace {

using runtime::has_outstanding;

/// Tests with `test(flag)` until it sets the flag or fails, or until the MPI's own wait will do. Returns an MPI code;
/// nothing in the last case.
template <class Test>
std::optional<int> test_until_done(Test test) {
    int code = MPI_SUCCESS;
    int done = 0;
    runtime::wait_until([&] {
        code = test(&done);
        return code != MPI_SUCCESS || done != 0 || !has_outstanding();
    });
    if (code == MPI_SUCCESS && done == 0) return std::nullopt;
    return code;
}

/// What a call on one request returns that may have completed an operation of ours.
int with_error_of_one(int code) {
    const int error = runtime::take_error();
    return code == MPI_SUCCESS ? error : code;
}

/// What a call on several requests returns; `statuses`: the `count` that were set.
int with_error_of_several(int code, int count, MPI_Status* statuses) {
    const int error = runtime::take_error();
    if (code != MPI_SUCCESS || error == MPI_SUCCESS) return code;
    if (statuses == MPI_STATUSES_IGNORE) return MPI_ERR_IN_STATUS;
    // For ours the MPI has set the field already. For others it is undefined so far.
    for (int i = 0; i < count; ++i)
        if (statuses[i].MPI_ERROR != error) statuses[i].MPI_ERROR = MPI_SUCCESS;
    return MPI_ERR_IN_STATUS;
}

/// Before a nonblocking call.
void progress_if_outstanding() {
    if (!has_outstanding()) return;
    if (const Guard guard; guard.entered()) runtime::progress_background();
}

}  // namespace

int on_MPI_Wait(MPI_Request* request, MPI_Status* status) {
    if (has_outstanding())
        if (const Guard guard; guard.entered())
            if (const auto code = test_until_done([&](int* done) { return PMPI_Test(request, done, status); }))
                return with_error_of_one(*code);
    return next::MPI_Wait(request, status);
}

int on_MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
    if (has_outstanding())
        if (const Guard guard; guard.entered()) {
            // One after the other: MPI_Testall of MPICH and Intel MPI refuses their own persistent collectives. A
            // request that it doesn't know is an error, which MPI_Waitall reports.
            int first = 0;
            runtime::wait_until([&] {
                for (int done = 1; first < count; ++first)
                    if (PMPI_Request_get_status(requests[first], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
                        return !has_outstanding();
                return true;
            });
        }
    // Nothing of ours is waited for any more, unless it has failed.
    const bool failed = has_outstanding();
    const int code = next::MPI_Waitall(count, requests, statuses);
    return failed ? with_error_of_several(code, count, statuses) : code;
}

int on_MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
    if (has_outstanding())
        if (const Guard guard; guard.entered())
            if (const auto code =
                    test_until_done([&](int* done) { return PMPI_Testany(count, requests, index, done, status); }))
                return with_error_of_one(*code);
    return next::MPI_Waitany(count, requests, index, status);
}

int on_MPI_Waitsome(int incount, MPI_Request requests[], int* outcount, int indices[], MPI_Status statuses[]) {
    if (has_outstanding())
        if (const Guard guard; guard.entered())
            // MPI_UNDEFINED isn't 0 either: nothing is active.
            if (const auto code = test_until_done([&](int* done) {
                    *outcount = 0;
                    const int tested = PMPI_Testsome(incount, requests, outcount, indices, statuses);
                    *done = *outcount != 0;
                    return tested;
                }))
                return with_error_of_several(*code, *outcount, statuses);
    return next::MPI_Waitsome(incount, requests, outcount, indices, statuses);
}

int on_MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
    if (!has_outstanding()) return next::MPI_Test(request, flag, status);
    progress_if_outstanding();
    return with_error_of_one(next::MPI_Test(request, flag, status));
}

int on_MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
    if (!has_outstanding()) return next::MPI_Testall(count, requests, flag, statuses);
    progress_if_outstanding();
    const int code = next::MPI_Testall(count, requests, flag, statuses);
    return with_error_of_several(code, count, statuses);
}

int on_MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
    if (!has_outstanding()) return next::MPI_Testany(count, requests, index, flag, status);
    progress_if_outstanding();
    return with_error_of_one(next::MPI_Testany(count, requests, index, flag, status));
}

int on_MPI_Testsome(int incount, MPI_Request requests[], int* outcount, int indices[], MPI_Status statuses[]) {
    if (!has_outstanding()) return next::MPI_Testsome(incount, requests, outcount, indices, statuses);
    progress_if_outstanding();
    const int code = next::MPI_Testsome(incount, requests, outcount, indices, statuses);
    return with_error_of_several(code, std::max(*outcount, 0), statuses);
}

int on_MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
    progress_if_outstanding();
    return next::MPI_Request_get_status(request, flag, status);
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
namespace {

template <class Function>
struct Second;
template <class Result, class First, class T, class... Others>
struct Second<Result (*)(First, T, Others...)> {
    using Type = T;
};
/// const MPI_Request*, as the standard has it; MPICH 4.3 declares these functions without const.
using Requests = Second<decltype(&PMPI_Request_get_status_all)>::Type;

}  // namespace

int on_MPI_Request_get_status_all(int count, Requests requests, int* flag, MPI_Status statuses[]) {
    progress_if_outstanding();
    return next::MPI_Request_get_status_all(count, requests, flag, statuses);
}

int on_MPI_Request_get_status_any(int count, Requests requests, int* index, int* flag, MPI_Status* status) {
    progress_if_outstanding();
    return next::MPI_Request_get_status_any(count, requests, index, flag, status);
}

int on_MPI_Request_get_status_some(int incount, Requests requests, int* outcount, int indices[],
                                   MPI_Status statuses[]) {
    progress_if_outstanding();
    return next::MPI_Request_get_status_some(incount, requests, outcount, indices, statuses);
}

#endif

int on_MPI_Request_free(MPI_Request* request) {
    progress_if_outstanding();
    if (runtime::any_persistent())
        if (const Guard guard; guard.entered()) runtime::persistent_is_freed(*request);
    return next::MPI_Request_free(request);
}

int on_MPI_Start(MPI_Request* request) {
    const int code = next::MPI_Start(request);
    if (code == MPI_SUCCESS && runtime::any_persistent())
        if (const Guard guard; guard.entered()) runtime::persistent_was_started(*request);
    return code;
}

int on_MPI_Startall(int count, MPI_Request requests[]) {
    const int code = next::MPI_Startall(count, requests);
    if (code == MPI_SUCCESS && runtime::any_persistent())
        if (const Guard guard; guard.entered())
            for (int i = 0; i < count; ++i) runtime::persistent_was_started(requests[i]);
    return code;
}

}  // namespace palmette::interpose
