// The signal that interrupts threads for samples: one that the program has no handler of, and another one if it
// installs one later.
#pragma once

#include <csignal>

namespace palmette::record {

/// Installs the handler for a real-time signal that the program doesn't handle, and returns it; 0: there is none.
int claim_signal(void (*handler)(int, siginfo_t*, void*));

/// Claims SIGTRAP, the signal of the kernel's events. False: the program handles it.
bool claim_trap(void (*handler)(int, siginfo_t*, void*));
/// What a signal does that nobody handles, once the handler that calls this returns.
void act_as_unhandled(int signal);

/// Implemented by whoever is interrupted: threads get `signal` from now on.
void move_samples_to(int signal);

}  // namespace palmette::record
