// What comes after this library: another tool, or the MPI.
#pragma once

#include <dlfcn.h>
#include <mpi.h>

#include <atomic>

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
        void* found = dlsym(RTLD_NEXT, name);
        const auto function = found ? reinterpret_cast<Function>(found) : fallback;
        if (!function) return MPI_ERR_UNSUPPORTED_OPERATION;
        function_.store(function, std::memory_order_relaxed);
        return function(arguments...);
    }

  private:
    std::atomic<Function> function_;
};

}  // namespace palmette::interpose
