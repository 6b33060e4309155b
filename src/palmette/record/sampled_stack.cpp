#include "palmette/record/sampled_stack.hpp"

#include <pthread.h>

#include <cstring>

#include "palmette/base/readable.hpp"

namespace palmette::record {
namespace {

using base::memory_page;
using Kind = base::FrameRule::Kind;
using From = base::FrameRule::From;

constexpr std::uintptr_t word_bytes = sizeof(std::uintptr_t);

std::uintptr_t word_at(std::uintptr_t address) {
    std::uintptr_t word = 0;
    std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);
    return word;
}

std::uintptr_t plus(std::uintptr_t base, std::int32_t offset) {
    return base + static_cast<std::uintptr_t>(static_cast<std::intptr_t>(offset));
}

}  // namespace

StackBounds own_stack_bounds() {
    StackBounds out;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return out;
    void* lowest = nullptr;
    std::size_t bytes = 0;
    pthread_attr_getstack(&attributes, &lowest, &bytes);
    pthread_attr_destroy(&attributes);
    out.lowest = reinterpret_cast<std::uintptr_t>(lowest);
    out.low = out.high = out.lowest + bytes;
    return out;
}

SampledWalk::SampledWalk(CodeRules& rules, std::uint32_t generation, StackBounds& bounds, const Registers& registers,
                         bool is_search)
    : rules_(rules),
      generation_(generation),
      bounds_(bounds),
      innermost_(registers),
      pc_(registers.pc),
      sp_(registers.sp),
      fp_(registers.fp),
      innermost_sp_(registers.sp),
      is_exact_(registers.is_exact),
      is_search_(is_search) {
    if (is_search) {
        bx_ = registers.bx;
        knows_bx_ = registers.knows_bx;
    }
    // What is above the stack pointer on the thread's own stack is there. This may be a coroutine's stack that lies
    // where the thread's could have grown to: then pages between them are missing.
    own_from_ = bounds_.low;
    if (sp_ >= bounds_.lowest && sp_ < bounds_.low && sp_ > bounds_.not_below) {
        const std::uintptr_t begin = sp_ & ~(memory_page - 1);
        if (base::is_readable(begin, bounds_.low - begin))
            own_from_ = bounds_.low = begin;
        else
            bounds_.not_below = sp_;
    }
    look();
}

bool SampledWalk::can_read(std::uintptr_t address) {
    if (address % word_bytes != 0) return false;
    if (address >= own_from_ && address < bounds_.high) return true;
    const std::uintptr_t page = address & ~(memory_page - 1);
    if (page == readable_page_) return true;
    if (page == 0 || !base::is_readable(page)) return false;
    readable_page_ = page;
    return true;
}

SampledFrame SampledWalk::frame() const {
    if (where_ == Where::lost) return {trace::ContextKind::lost, 0, 0, false};
    return {trace::ContextKind::native, code_.module, pc_ - code_.base, is_exact_};
}

void SampledWalk::look() {
    caller_sp_ = ra_at_ = fp_at_ = 0;
    // A return address is behind its call, maybe in the next function.
    if (!rules_.find(is_exact_ ? pc_ : pc_ - 1, generation_, code_)) code_ = {};
    if (code_.rule.kind == Kind::caller && !find_caller()) code_.rule.kind = Kind::unknown;
}

bool SampledWalk::find_caller() {
    const base::FrameRule& rule = code_.rule;
    if (rule.cfa_from == From::bx && !find_bx()) [[unlikely]]
        return false;
    std::uintptr_t cfa = plus(rule.cfa_from == From::sp ? sp_ : rule.cfa_from == From::fp ? fp_ : bx_, rule.cfa);
    if (rule.cfa_is_there) {
        const std::uintptr_t at = cfa;
        if (!can_read(at)) return false;
        cfa = word_at(at);
    }
    const auto from = [&](From where, std::int32_t offset) {
        return plus(where == From::cfa ? cfa : where == From::sp ? sp_ : fp_, offset);
    };
    // A signal may have come on a stack of its own, wherever that lies.
    if (cfa <= sp_ && !rule.is_signal) return false;
    const std::uintptr_t ra_at = from(rule.ra_from, rule.ra);
    if (!can_read(ra_at)) return false;
    caller_pc_ = word_at(ra_at);
    ra_at_ = ra_at;
    caller_fp_ = fp_;
    if (rule.fp_from != From::kept) {
        const std::uintptr_t fp_at = from(rule.fp_from, rule.fp);
        if (!can_read(fp_at)) return false;
        caller_fp_ = word_at(fp_at);
        fp_at_ = fp_at;
    }
    caller_sp_ = cfa;
    caller_knows_bx_ = false;
    if (knows_bx_) [[unlikely]]
        find_caller_bx(cfa);
    return true;
}

/// Finds what rbx holds at this frame: by a walk of its own from the innermost one on, which follows it.
bool SampledWalk::find_bx() {
    if (knows_bx_ || is_search_) return knows_bx_;
    SampledWalk search(rules_, generation_, bounds_, innermost_, true);
    while (search.where_ == Where::frame && search.steps_ < steps_) search.step();
    if (search.where_ != Where::frame || search.sp_ != sp_) return false;
    bx_ = search.bx_;
    knows_bx_ = search.knows_bx_;
    return knows_bx_;
}

void SampledWalk::find_caller_bx(std::uintptr_t cfa) {
    const base::FrameRule& rule = code_.rule;
    caller_bx_ = bx_;
    caller_knows_bx_ = rule.bx_from != From::unknown;
    if (rule.bx_from == From::kept || !caller_knows_bx_) return;
    const std::uintptr_t base = rule.bx_from == From::cfa ? cfa : rule.bx_from == From::sp ? sp_ : fp_;
    const std::uintptr_t at = plus(base, rule.bx);
    caller_knows_bx_ = can_read(at);
    if (caller_knows_bx_) caller_bx_ = word_at(at);
}

void SampledWalk::step() {
    if (where_ != Where::frame) return;
    if (code_.rule.kind == Kind::outermost || (code_.rule.kind == Kind::caller && caller_pc_ == 0)) {
        where_ = Where::complete;
        return;
    }
    if (code_.rule.kind == Kind::unknown || ++steps_ == most_steps) {
        where_ = Where::lost;
        return;
    }
    is_exact_ = code_.rule.is_signal;
    pc_ = caller_pc_;
    sp_ = caller_sp_;
    fp_ = caller_fp_;
    bx_ = caller_bx_;
    knows_bx_ = caller_knows_bx_;
    look();
}

}  // namespace palmette::record
