// Calls that are seldom: left by a jump, inside of others, or made while recording is switched off.
#include "palmette/record/call_requests.hpp"

#include <cstring>

#include "palmette/record/functions.hpp"

namespace palmette::record {

void Call::count_only(const void* return_address, const void* frame) {
    Recorder* const current = recorder.load(std::memory_order_acquire);
    if (!current) return;
    ThreadState* thread = thread_state;
    if (!thread || thread->owner != current) thread = current->join_thread();
    first_ = thread;
    place_ = thread->calls.begin(return_address, frame,
                                 [&](std::uint32_t slot) { end_left(*current, *current->state_at(*thread, slot)); });
    if (!place_) {
        if (current->meet_nested(*thread, return_address, false)) count_nested(*current, *thread);
        return;
    }
    thread->counts_sent = true;
    counter_ = current;
    thread_ = current->state_at(*thread, place_.slot);
}

void Call::count_nested(Recorder& current, ThreadState& thread) {
    // Else a tool that implements one function by others would count what the program sends twice.
    if (thread.counts_sent) return;
    counter_ = &current;
    thread_ = &thread;
}

void Call::end_left(Recorder& current, ThreadState& thread) {
    if (!thread.entry) return;
    for (std::size_t i = 0; i < thread.waited_count; ++i)
        if (thread.waited[i]) thread.waited[i]->waited_by.store(0, std::memory_order_relaxed);
    thread.waited_count = 0;
    trace::OpenCall& open = thread.entry->open;
    const std::uint64_t begun = open.ticks.load(std::memory_order_relaxed);
    if (begun == 0) return;
    const std::uint16_t function = open.function.load(std::memory_order_relaxed);
    // Mostly an error handler has jumped: of a call that was refused, or of a receive that got too much.
    const bool received = function < function_count && std::strstr(function_names[function], "ecv") != nullptr;
    Call call(current, thread);
    call.add(begun, begun, function, open.communicator.load(std::memory_order_relaxed),
             open.path.load(std::memory_order_relaxed), 0, received ? open.bytes.load(std::memory_order_relaxed) : 0,
             received ? open.peer.load(std::memory_order_relaxed) : -1, open.tag.load(std::memory_order_relaxed),
             open.instance.load(std::memory_order_relaxed), false);
    open.ticks.store(0, std::memory_order_release);
    current.count_left();
}

}  // namespace palmette::record
