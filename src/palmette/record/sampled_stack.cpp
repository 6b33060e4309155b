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

SampledWalk::SampledWalk(CodeRules& rules, std::uint32_t generation, StackBounds& bounds, const Registers& registers)
    : rules_(rules),
      generation_(generation),
      bounds_(bounds),
      pc_(registers.pc),
      sp_(registers.sp),
      fp_(registers.fp),
      innermost_sp_(registers.sp),
      is_exact_(registers.is_exact) {
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
    std::uintptr_t cfa = plus(rule.cfa_from == From::sp ? sp_ : fp_, rule.cfa);
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
    return true;
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
    look();
}

}  // namespace palmette::record
