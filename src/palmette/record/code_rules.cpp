#include "palmette/record/code_rules.hpp"

#include <link.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>

#include "palmette/base/loaded_module.hpp"
#include "palmette/record/build_ids.hpp"
#include "palmette/record/node_file.hpp"

namespace palmette::record {
namespace {

using From = base::FrameRule::From;

/// A rule's kind and the module's number in a word, with the generation that it was learnt in.
std::uint64_t packed(const CodeRule& rule, std::uint32_t generation) {
    const base::FrameRule& frame = rule.rule;
    const auto bits = static_cast<std::uint32_t>(frame.kind) | static_cast<std::uint32_t>(frame.cfa_from) << 2U |
                      static_cast<std::uint32_t>(frame.fp_from) << 5U |
                      static_cast<std::uint32_t>(frame.ra_from) << 8U |
                      static_cast<std::uint32_t>(frame.bx_from) << 11U | (frame.cfa_is_there ? 1U : 0U) << 14U |
                      (frame.is_signal ? 1U : 0U) << 15U | rule.module << 16U;
    return std::uint64_t{generation} << 32U | bits;
}

std::uint64_t both(std::int32_t high, std::int32_t low) {
    return std::uint64_t{static_cast<std::uint32_t>(high)} << 32U | static_cast<std::uint32_t>(low);
}

/// Not a thread's own variable: there is little room for these in simulations, which load this once for each rank.
std::uintptr_t own_thread() { return static_cast<std::uintptr_t>(pthread_self()); }

}  // namespace

bool CodeRules::look_up(std::uintptr_t address, std::uint32_t generation, CodeRule& out) const {
    std::size_t at = first_slot(address);
    for (std::size_t tries = 0; tries < most_tries; ++tries, ++at) {
        const Slot& slot = slots_[at % slots];
        const std::uint64_t held = slot.address.load(std::memory_order_acquire);
        if (held == 0) return false;
        if (held != address) continue;
        const std::uint64_t kind = slot.kind.load(std::memory_order_relaxed);
        const std::uint64_t offsets = slot.offsets.load(std::memory_order_relaxed);
        const std::uint64_t more_offsets = slot.more_offsets.load(std::memory_order_relaxed);
        out.base = slot.base.load(std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (slot.address.load(std::memory_order_relaxed) != address || kind >> 32U != generation) continue;
        const auto bits = static_cast<std::uint32_t>(kind);
        out.module = bits >> 16U;
        out.rule.kind = static_cast<base::FrameRule::Kind>(bits & 3U);
        out.rule.cfa_from = static_cast<From>(bits >> 2U & 7U);
        out.rule.fp_from = static_cast<From>(bits >> 5U & 7U);
        out.rule.ra_from = static_cast<From>(bits >> 8U & 7U);
        out.rule.bx_from = static_cast<From>(bits >> 11U & 7U);
        out.rule.cfa_is_there = (bits >> 14U & 1U) != 0;
        out.rule.is_signal = (bits >> 15U & 1U) != 0;
        out.rule.cfa = static_cast<std::int32_t>(offsets >> 32U);
        out.rule.fp = static_cast<std::int32_t>(offsets & 0xFFFFFFFFU);
        out.rule.bx = static_cast<std::int32_t>(more_offsets >> 32U);
        out.rule.ra = static_cast<std::int32_t>(more_offsets & 0xFFFFFFFFU);
        return true;
    }
    return false;
}

void CodeRules::keep(std::uintptr_t address, std::uint32_t generation, const CodeRule& rule) {
    std::size_t at = first_slot(address);
    for (std::size_t tries = 0; tries < most_tries; ++tries, ++at) {
        Slot& slot = slots_[at % slots];
        std::uint64_t held = slot.address.load(std::memory_order_acquire);
        if (held == being_written) continue;
        // The place of one that was learnt before something was unloaded is free; where all are taken, the last is.
        const bool is_free = held == 0 || slot.kind.load(std::memory_order_relaxed) >> 32U != generation;
        if (!is_free && tries + 1 < most_tries) continue;
        if (!slot.address.compare_exchange_strong(held, being_written, std::memory_order_acq_rel)) continue;
        std::atomic_thread_fence(std::memory_order_release);
        slot.kind.store(packed(rule, generation), std::memory_order_relaxed);
        slot.offsets.store(both(rule.rule.cfa, rule.rule.fp), std::memory_order_relaxed);
        slot.more_offsets.store(both(rule.rule.bx, rule.rule.ra), std::memory_order_relaxed);
        slot.base.store(rule.base, std::memory_order_relaxed);
        slot.address.store(address, std::memory_order_release);
        return;
    }
}

bool CodeRules::learn(std::uintptr_t address, std::uint32_t generation, CodeRule& out) {
    // Whoever holds it is in a handler, in which no other one comes: it goes on soon, if it has a processor.
    constexpr int tries = 400;
    for (int i = 0; learning_.exchange(true, std::memory_order_seq_cst); ++i) {
        if (i == tries || !may_read_tables()) return false;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    // What the calling thread unloads stays as it is until this handler is left.
    const bool may = may_read_tables();
    if (may) {
        out = {};
        if (readable_since_ != generation) readable_.forget();
        readable_since_ = generation;
        dl_phdr_info module{};
        if (base::loaded_module_at(address, module, readable_)) {
            out.rule = base::frame_rule_in(module, address, readable_);
            out.base = module.dlpi_addr;
            out.module = number_of(module, generation);
        }
        keep(address, generation, out);
    }
    learning_.store(false, std::memory_order_seq_cst);
    return may;
}

std::uint32_t CodeRules::number_of(const dl_phdr_info& module, std::uint32_t generation) {
    for (std::size_t i = 0; i < known_count_; ++i) {
        CacheEntry& one = known_[i];
        if (one.base == module.dlpi_addr && one.headers == module.dlpi_phdr && one.generation == generation)
            return one.number;
    }
    trace::ModuleEntry entry{};
    take_build_id(module, entry);
    const char* const name = module.dlpi_name && *module.dlpi_name ? module.dlpi_name : section_->executable.data();
    put_text(entry.path, name);
    // A module that was there before something was unloaded has a number already.
    trace::Table& table = section_->sampling.modules;
    auto* const entries = trace::entries<trace::ModuleEntry>(*section_, table);
    const std::uint32_t count = table.count.load(std::memory_order_relaxed);
    std::uint32_t number = 1;
    while (number < count && (entries[number].build_id != entry.build_id || entries[number].path != entry.path))
        ++number;
    if (number >= table.capacity) return 0;
    if (number >= count) {
        entries[number] = entry;
        table.count.store(number + 1, std::memory_order_release);
    }
    CacheEntry* place = std::find_if(known_, known_ + known_count_,
                                     [&](const CacheEntry& one) { return one.generation != generation; });
    if (place == known_ + most_known) return number;
    if (place == known_ + known_count_) ++known_count_;
    *place = {module.dlpi_addr, module.dlpi_phdr, generation, number};
    return number;
}

bool CodeRules::may_read_tables() const {
    const std::uint32_t going_on = unloading_.load(std::memory_order_seq_cst);
    return going_on == 0 || (going_on == 1 && unloader_.load(std::memory_order_seq_cst) == own_thread());
}

void CodeRules::begin_unload() {
    const bool is_alone = unloading_.fetch_add(1, std::memory_order_seq_cst) == 0;
    while (learning_.load(std::memory_order_seq_cst)) sched_yield();
    // Only now: a handler that was reading tables has been waited for above.
    if (is_alone) unloader_.store(own_thread(), std::memory_order_seq_cst);
}

void CodeRules::end_unload() {
    std::uintptr_t own = own_thread();
    unloader_.compare_exchange_strong(own, 0, std::memory_order_seq_cst);
    unloading_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace palmette::record
