// What the functions of palmette.h have in common: no exception leaves them, and errors are kept as sentences.
#pragma once

#include <mpi.h>

#include <atomic>
#include <new>
#include <string>
#include <utility>

#include "palmette/base/error.hpp"
#include "palmette/base/never_destroyed.hpp"
#include "palmette/interpose/guard.hpp"

#define PALMETTE_API extern "C" __attribute__((visibility("default")))

namespace palmette::interpose {

struct ErrorText {
    std::string error;
};
/// What palmette_error returns in this thread.
inline std::string& last_error() { return base::per_thread<ErrorText, ErrorText>().error; }

inline int failed(int code, std::string text) {
    last_error() = std::move(text);
    return code;
}

/// No exception leaves a C function.
template <class Do>
int guarded(Do what) {
    // Other operations are progressed meanwhile, and may invoke the program's MPI callbacks.
    const Guard guard;
    api_was_used.store(true, std::memory_order_relaxed);
    try {
        last_error().clear();
        return what();
    } catch (const base::Error& error) {
        return failed(MPI_ERR_ARG, error.what());
    } catch (const std::bad_alloc&) {
        return failed(MPI_ERR_NO_MEM, "out of memory");
    } catch (const std::exception& error) {
        return failed(MPI_ERR_OTHER, error.what());
    }
}

template <class T>
T& non_null(T* pointer, const char* what) {
    if (!pointer) base::fail(what, " is null");
    return *pointer;
}

}  // namespace palmette::interpose
