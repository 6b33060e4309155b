// A blocking collective whose arguments are wrong at this rank alone.
//
// MPIs find most such errors before they communicate, so that a program may repeat the call at this rank alone, with
// right arguments, and go on. Another program goes on without it, while the other ranks may wait for this one's part.
// Which of them this is shows at the next call: so the call returns its error at once and is postponed. If it is
// repeated, it is forgotten; before any other call it is made, with the data that it came with.
#pragma once

#include <atomic>
#include <optional>

#include "palmette/runtime/call/call.hpp"
#include "palmette/runtime/data/call_arguments.hpp"

namespace palmette::runtime {

inline constinit std::atomic<bool> postponed_one{false};
inline bool has_postponed() { return postponed_one.load(std::memory_order_relaxed); }

/// Postpones a call that has been prepared, with this error class. Returns the program's code; nothing where it must
/// be made now: there is one already, the MPI would find the error in messages only, or has none to send.
std::optional<int> postpone(Call& call, const CallArguments& arguments, int fault);

/// Before another call of the program's, a blocking collective with the arguments `next` or any other one (null): makes
/// or forgets the postponed one.
void settle_postponed(const CallArguments* next);

}  // namespace palmette::runtime
