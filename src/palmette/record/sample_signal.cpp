#include "palmette/record/sample_signal.hpp"

#if !defined(PALMETTE_ABI_SMPI)

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <initializer_list>

namespace palmette::record {
namespace {

using Handler = void (*)(int, siginfo_t*, void*);
using SetAction = int (*)(int, const struct sigaction*, struct sigaction*);
using SetHandler = sighandler_t (*)(int, sighandler_t);

constinit std::atomic<int> claimed{0};
constinit std::atomic<Handler> handler_of_samples{nullptr};
constinit std::atomic<SetAction> own_next_sigaction{nullptr};
constinit std::atomic<SetHandler> own_next_signal{nullptr};

/// What comes behind this library. Looked up at its start, since the program may call these in a handler.
template <class Function>
Function next_of(std::atomic<Function>& known, const char* name) {
    Function found = known.load(std::memory_order_acquire);
    if (!found) {
        found = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
        known.store(found, std::memory_order_release);
    }
    return found;
}
SetAction next_sigaction() { return next_of(own_next_sigaction, "sigaction"); }
SetHandler next_signal() { return next_of(own_next_signal, "signal"); }
__attribute__((constructor)) void look_up() {
    next_sigaction();
    next_signal();
}

bool is_free(int signal) {
    struct sigaction there{};
    return next_sigaction()(signal, nullptr, &there) == 0 && (there.sa_flags & SA_SIGINFO) == 0 &&
           there.sa_handler == SIG_DFL;
}

/// Takes it if it is free.
bool take(int signal) {
    if (!is_free(signal)) return false;
    struct sigaction action{};
    action.sa_sigaction = handler_of_samples.load(std::memory_order_acquire);
    // On the thread's alternate stack, where it has one: its own may be a user-level thread's small one.
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT}) sigdelset(&action.sa_mask, fault);
    if (next_sigaction()(signal, &action, nullptr) != 0) return false;
    claimed.store(signal, std::memory_order_release);
    return true;
}

/// Takes a real-time one that is free, but `not_that`.
int claim(int not_that) {
    // From the upper end, where programs look last.
    for (int signal = SIGRTMAX; signal >= SIGRTMIN; --signal) {
        if (signal != not_that && take(signal)) return signal;
    }
    return 0;
}

/// The program installs a handler of its own: samples move to another signal.
void give_way(int signal) {
    int held = signal;
    if (signal == 0 || !claimed.compare_exchange_strong(held, 0, std::memory_order_acq_rel)) return;
    move_samples_to(claim(signal));
}

}  // namespace

int claim_signal(Handler handler) {
    handler_of_samples.store(handler, std::memory_order_release);
    return claim(0);
}

bool claim_trap(Handler handler) {
    handler_of_samples.store(handler, std::memory_order_release);
    return take(SIGTRAP);
}

void act_as_unhandled(int signal) {
    struct sigaction action{};
    next_sigaction()(signal, &action, nullptr);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
}

}  // namespace palmette::record

/// The program sees the signal of samples as one that nobody handles.
extern "C" __attribute__((visibility("default"))) int entry_sigaction(int signal, const struct sigaction* action,
                                                                      struct sigaction* before) __asm__("sigaction");
int entry_sigaction(int signal, const struct sigaction* action, struct sigaction* before) {
    using namespace palmette::record;
    const SetAction next = next_sigaction();
    if (!next) {
        errno = ENOSYS;
        return -1;
    }
    const bool is_ours = signal != 0 && signal == claimed.load(std::memory_order_acquire);
    if (is_ours && action) give_way(signal);
    const int code = next(signal, action, before);
    if (is_ours && code == 0 && before) *before = {};
    return code;
}

extern "C" __attribute__((visibility("default"))) sighandler_t entry_signal(int signal,
                                                                            sighandler_t handler) __asm__("signal");
sighandler_t entry_signal(int signal, sighandler_t handler) {
    using namespace palmette::record;
    const SetHandler next = next_signal();
    if (!next) {
        errno = ENOSYS;
        return SIG_ERR;
    }
    const bool is_ours = signal != 0 && signal == claimed.load(std::memory_order_acquire);
    if (is_ours) give_way(signal);
    const sighandler_t before = next(signal, handler);
    return is_ours && before != SIG_ERR ? SIG_DFL : before;
}

#endif
