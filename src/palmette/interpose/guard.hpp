// Re-entrancy guard: MPI calls from inside of palmette or the MPI, made while we serve one, aren't intercepted.
#pragma once

#include <atomic>

#include "palmette/base/stack_walk.hpp"

namespace palmette::interpose {

/// This thread is inside of palmette. Static TLS (initial-exec), so that an access costs one instruction.
#if defined(PALMETTE_ABI_SMPI)
// A simulation loads hundreds of copies of this library, too many for static TLS.
extern constinit thread_local bool inside;
#else
extern constinit thread_local bool inside __attribute__((tls_model("initial-exec")));
#endif

/// Where it has come from.
#if defined(PALMETTE_ABI_SMPI)
extern constinit thread_local base::Standing inside_from;
#else
extern constinit thread_local base::Standing inside_from __attribute__((tls_model("initial-exec")));
#endif
/// Whether a call that marked this thread as inside was left by a longjmp, of an error handler or an operation.
bool was_left(const void* return_address, const void* frame);
/// Enters palmette, unless this thread is inside of it: from the function with that return address and frame address.
inline bool enters(const void* return_address, const void* frame) {
    if (inside && !was_left(return_address, frame)) return false;
    inside = true;
    inside_from.frame = reinterpret_cast<std::uintptr_t>(frame);
    inside_from.return_address = reinterpret_cast<std::uintptr_t>(return_address);
    return true;
}

/// Marks this thread as inside of palmette for its lifetime.
class Guard {
  public:
    /// Inlined, since it takes its function's frame.
    [[gnu::always_inline]] inline Guard() : entered_(enters(__builtin_return_address(0), __builtin_frame_address(0))) {}
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() { inside = !entered_; }
    /// False when this thread was inside already.
    bool entered() const { return entered_; }

  private:
    bool entered_;
};

extern constinit std::atomic<bool> is_up;
/// MPI_Init or MPI_Init_thread was intercepted.
extern constinit std::atomic<bool> init_was_ours;
/// The program called functions of palmette.h: it needn't have been preloaded.
extern constinit std::atomic<bool> api_was_used;
bool start_late();

/// True when the runtime is up. A program that only opened sessions never called MPI_Init: the runtime is started at
/// its first collective.
inline bool started() { return is_up.load(std::memory_order_acquire) || start_late(); }

/// One call of the program's. It is ours to handle when it doesn't come from inside of palmette and the runtime is up.
class Entry {
  public:
    [[gnu::always_inline]] inline Entry() {}
    bool ours() const { return guard_.entered() && started(); }

  private:
    Guard guard_;
};

}  // namespace palmette::interpose
