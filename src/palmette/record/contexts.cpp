#include "palmette/record/contexts.hpp"

#include "palmette/record/zeroed.hpp"

namespace palmette::record {

void Contexts::attach(trace::SectionHeader& section) {
    table_ = &section.sampling.contexts;
    nodes_ = trace::entries<trace::ContextNode>(section, *table_);
    slots_ = std::size_t{2} * table_->capacity;
    index_ = zeroed<std::atomic<std::uint32_t>>(slots_);
    table_->count.store(1, std::memory_order_release);
}

bool Contexts::is(std::uint32_t number, std::uint32_t parent, const SampledFrame& frame) const {
    const trace::ContextNode& node = nodes_[number];
    return node.parent == parent && node.offset == frame.offset && node.module == frame.module &&
           node.kind == frame.kind && (node.is_innermost != 0) == frame.is_innermost;
}

std::uint32_t Contexts::child_of(std::uint32_t parent, const SampledFrame& frame) {
    std::uint64_t mixed = (frame.offset ^ std::uint64_t{frame.module} << 40U) * 0x9E3779B97F4A7C15ULL;
    mixed = (mixed ^ mixed >> 29U ^ parent ^ static_cast<std::uint64_t>(frame.kind) << 32U) * 0xBF58476D1CE4E5B9ULL;
    std::size_t at = static_cast<std::size_t>(mixed >> 20U) % slots_;
    std::uint32_t made = 0;
    for (std::size_t tries = 0; tries < most_tries; ++tries, at = at + 1 == slots_ ? 0 : at + 1) {
        std::uint32_t held = index_[at].load(std::memory_order_acquire);
        if (held == 0) {
            if (made == 0) made = make(parent, frame);
            if (made == 0) return 0;
            if (index_[at].compare_exchange_strong(held, made, std::memory_order_acq_rel)) return made;
        }
        // Another thread may have made it meanwhile: then this one's stays unused.
        if (is(held, parent, frame)) return held;
    }
    return 0;
}

std::uint32_t Contexts::make(std::uint32_t parent, const SampledFrame& frame) {
    std::uint32_t number = table_->count.load(std::memory_order_relaxed);
    do {
        if (number >= table_->capacity) return 0;
    } while (!table_->count.compare_exchange_weak(number, number + 1, std::memory_order_acq_rel));
    trace::ContextNode& node = nodes_[number];
    node.parent = parent;
    node.kind = frame.kind;
    node.module = frame.module;
    node.is_innermost = frame.is_innermost ? 1 : 0;
    node.offset = frame.offset;
    return number;
}

}  // namespace palmette::record
