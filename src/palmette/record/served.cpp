// What the runtime tells of calls that palmette serves.
#include <algorithm>

#include "palmette/record/node_file.hpp"
#include "palmette/record/recorder.hpp"
#include "palmette/trace/served.hpp"

namespace palmette::record {

std::uint32_t Recorder::add_plan(const trace::ServedPlan& plan) {
    const std::lock_guard lock(mutex_);
    const std::uint32_t index = section_->plans.count.load(std::memory_order_relaxed);
    const std::uint32_t first = section_->sends.count.load(std::memory_order_relaxed);
    if (index >= section_->plans.capacity || plan.send_count > section_->sends.capacity - first) return 0;
    trace::PlanEntry& entry = plans_[index];
    put_text(entry.function, plan.function);
    put_text(entry.algorithm, plan.algorithm);
    const auto known = communicators_.find(plan.communicator);
    entry.communicator = known == communicators_.end() ? 0 : known->second.index;
    entry.root = plan.root;
    entry.block_bytes = plan.block_bytes;
    entry.bound_ns = plan.bound_ns;
    entry.first_send = first;
    entry.send_count = static_cast<std::uint32_t>(plan.send_count);
    std::copy_n(plan.sends, plan.send_count, table<trace::PlanSend>(section_->sends) + first);
    section_->sends.count.store(first + entry.send_count, std::memory_order_release);
    section_->plans.count.store(index + 1, std::memory_order_release);
    return index;
}

void Recorder::add_sends(std::uint32_t plan, const trace::PlanSend* sends, std::size_t count) {
    const trace::PlanEntry& entry = plans_[plan];
    trace::PlanSend* to = table<trace::PlanSend>(section_->sends) + entry.first_send;
    trace::PlanSend* const end = to + entry.send_count;
    // Both are in the order of their peers.
    for (std::size_t i = 0; i < count; ++i) {
        while (to != end && to->peer < sends[i].peer) ++to;
        if (to == end || to->peer != sends[i].peer) continue;
        to->messages += sends[i].messages;
        to->bytes += sends[i].bytes;
    }
}

double Recorder::call_cost_s() const {
    const double ticks = section_->call_cost_milliticks.load(std::memory_order_relaxed) * 1e-3;
    if (!section_->ticks_are_tsc) return ticks * 1e-9;
    const double passed_ns = static_cast<double>(section_->last.monotonic_ns.load(std::memory_order_relaxed) -
                                                 section_->first.monotonic_ns.load(std::memory_order_relaxed));
    const auto passed = static_cast<double>(section_->last.ticks.load(std::memory_order_relaxed) -
                                            section_->first.ticks.load(std::memory_order_relaxed));
    return passed > 0 ? ticks * passed_ns / passed * 1e-9 : 0;
}

}  // namespace palmette::record

using palmette::record::recorder;
using palmette::record::thread_state;

std::uint32_t palmette_record_add_plan(const palmette::trace::ServedPlan* plan) {
    palmette::record::Recorder* const current = recorder.load(std::memory_order_acquire);
    return current ? current->add_plan(*plan) : 0;
}

void palmette_record_serve_by(std::uint32_t plan) {
    palmette::record::Recorder* const current = palmette::record::active.load(std::memory_order_acquire);
    // Progress that a call makes may serve another one, which the program began earlier: the outermost is what counts.
    if (!current || !thread_state || thread_state->owner != current || !thread_state->serving) return;
    if (plan == 0) current->count_unplanned();
    thread_state->serving->plan = plan;
}

void palmette_record_left_to_mpi() {
    if (thread_state && thread_state->serving) thread_state->serving->plan = 0;
}

void palmette_record_add_sends(std::uint32_t plan, const palmette::trace::PlanSend* sends, std::size_t count) {
    palmette::record::Recorder* const current = recorder.load(std::memory_order_acquire);
    if (current) current->add_sends(plan, sends, count);
}

void palmette_record_synchronize(const void* comm) {
    if (palmette::record::Recorder* const current = recorder.load(std::memory_order_acquire))
        current->synchronize(*static_cast<const MPI_Comm*>(comm));
}

void palmette_record_synchronize_again() {
    if (palmette::record::Recorder* const current = recorder.load(std::memory_order_acquire))
        current->synchronize_again();
}

int palmette_record_is_on() { return recorder.load(std::memory_order_acquire) != nullptr ? 1 : 0; }

double palmette_record_call_cost() {
    palmette::record::Recorder* const current = recorder.load(std::memory_order_acquire);
    return current ? current->call_cost_s() : 0;
}
