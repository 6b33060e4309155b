// Forwarding to the next library that has a function: another tool, or the MPI.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <type_traits>

#include "palmette/mpi/library.hpp"

namespace palmette::interpose {

/// A function of whatever comes next, found at its first call. A later call costs one load and one jump.
template <class Function>
class Next;

template <class... Arguments>
class Next<int (*)(Arguments...)> {
  public:
    using Function = int (*)(Arguments...);
    /// `first`: finds the function, keeps it and calls it.
    constexpr explicit Next(Function first) : function_(first) {}

    int operator()(Arguments... arguments) const { return function_.load(std::memory_order_relaxed)(arguments...); }

    /// The function called `name` after this library, or the MPI's own `fallback`, which an older MPI may lack.
    int find_and_call(const char* name, Function fallback, Arguments... arguments) {
        void* found = mpi::next(name);
        const auto function = found ? reinterpret_cast<Function>(found) : fallback;
        if (!function) return MPI_ERR_UNSUPPORTED_OPERATION;
        function_.store(function, std::memory_order_relaxed);
        return function(arguments...);
    }

  private:
    std::atomic<Function> function_;
};

/// An argument as it came. The MPIs' handles are int or pointer; all arguments of MPI's functions fit into a general
/// register or its place on the stack, so that a
/// call can be passed on whole to an MPI of any ABI.
using Word = std::uintptr_t;

template <class T>
T argument(Word word) {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<T>(word);
    else
        return static_cast<T>(word);
}

/// Forwards a function that isn't ours to handle: the process's MPI has another ABI, or hasn't been found.
class PassOn {
  public:
    constexpr explicit PassOn(const char* name) : name_(name) {}

    template <class... Words>
    int operator()(Words... words) {
        const auto function = reinterpret_cast<int (*)(Words...)>(find(name_));
        if (function) return function(words...);
        if constexpr (sizeof...(Words) == 1) {
            // What a library asks that may be used without MPI, too.
            const std::string_view name(name_);
            if (name == "MPI_Initialized" || name == "MPI_Finalized") {
                *(reinterpret_cast<int*>(words), ...) = 0;
                return MPI_SUCCESS;
            }
        }
        std::fprintf(stderr, "palmette: %s was called, but no MPI is loaded in this process that has it\n", name_);
        return MPI_ERR_OTHER;
    }

  private:
    void* find(const char* name) {
        void* function = function_.load(std::memory_order_relaxed);
        if (!function) function_.store(function = mpi::next(name), std::memory_order_relaxed);
        return function;
    }

    const char* name_;
    std::atomic<void*> function_{nullptr};
};

}  // namespace palmette::interpose
