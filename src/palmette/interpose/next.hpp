// Forwarding to the next library that has a function: another tool, or the MPI.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <tuple>
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
        if (mpi::is_get_status_of_several(name_)) {
            const std::array<Word, sizeof...(Words)> all{words...};
            return mpi::get_status_of_several(name_, all);
        }
        std::fprintf(stderr, "palmette: %s was called, but no MPI is loaded in this process that has it\n", name_);
        return MPI_ERR_OTHER;
    }

    /// The same for a function with large counts, which an older MPI lacks: a program that checks for its presence
    /// finds ours. Then it is forwarded to the one without large counts. Bit i of `counts`: argument i is a count; of
    /// `lists`: a list of counts or displacements, one for each rank of argument `comm`.
    template <unsigned counts, unsigned lists, std::size_t comm, class... Words>
    int with_large_counts(const char* narrow, Words... words) {
        if (mpi::next(name_)) return (*this)(words...);
        // From the front: the preload library for the MPI's ABI may precede this one.
        const auto function = reinterpret_cast<int (*)(Words...)>(mpi::first(narrow));
        if (!function) return (*this)(words...);
        std::array<Word, sizeof...(Words)> all{words...};
        for (std::size_t i = 0; i < all.size(); ++i) {
            if ((counts >> i & 1) != 0 && static_cast<std::int64_t>(all[i]) > INT32_MAX) return MPI_ERR_COUNT;
            if ((lists >> i & 1) != 0) all[i] = mpi::narrowed(all[i], all[comm]);
        }
        return std::apply(function, all);
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
