// The stack of an interrupted thread, walked in the signal handler: nothing is allocated, no lock is taken, and nothing
// is read that can't be.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "palmette/record/code_rules.hpp"
#include "palmette/trace/format.hpp"

namespace palmette::record {

/// A frame as the tree of contexts has it.
struct SampledFrame {
    trace::ContextKind kind = trace::ContextKind::native;
    std::uint32_t module = 0;
    std::uint64_t offset = 0;
    bool is_innermost = false;

    bool operator==(const SampledFrame&) const = default;
};

/// Frames from the innermost outwards. Of deep stacks the inner and the outermost ones are kept.
class SampledFrames {
  public:
    static constexpr std::size_t most_inner = 128, most_outer = 32, most = most_inner + 1 + most_outer;

    void clear() { count_ = 0; }
    void add(const SampledFrame& frame) {
        (count_ < most_inner ? inner_[count_] : outer_[(count_ - most_inner) % most_outer]) = frame;
        ++count_;
    }
    bool is_cut() const { return count_ > most_inner + most_outer; }
    /// Where the mark stands, among the frames that are kept, of those that aren't.
    std::size_t size() const { return is_cut() ? most : count_; }
    /// The frame at place `i` from the outermost (0) inwards.
    SampledFrame from_outside(std::size_t i) const {
        const std::size_t outer = count_ <= most_inner ? 0 : is_cut() ? most_outer : count_ - most_inner;
        if (i < outer) return outer_[(count_ - most_inner - 1 - i) % most_outer];
        if (is_cut() && i == outer) return {trace::ContextKind::cut, 0, 0, false};
        const std::size_t inner = i - outer - (is_cut() ? 1 : 0);
        return inner_[(count_ < most_inner ? count_ : most_inner) - 1 - inner];
    }

  private:
    std::array<SampledFrame, most_inner> inner_{};
    std::array<SampledFrame, most_outer> outer_{};
    std::size_t count_ = 0;
};

/// Where a thread's own stack lies.
struct StackBounds {
    std::uintptr_t lowest = 0, high = 0;  ///< where it may reach to, and where it begins
    std::uintptr_t low = 0;               ///< from here on it is known to be there
    std::uintptr_t not_below = 0;         ///< another stack was found here, in what the thread's could have grown to
};
/// Where the calling thread's stack lies. Not to be called from a handler.
StackBounds own_stack_bounds();

/// A thread's registers where it was interrupted.
struct Registers {
    std::uintptr_t pc = 0, sp = 0, fp = 0;
    bool is_exact = true;   ///< false: the frame is in a call that returns to `pc`
    bool knows_bx = false;  ///< what rbx holds; not of a frame further out
    std::uintptr_t bx = 0;
};

/// One walk, from the innermost frame outwards.
class SampledWalk {
  public:
    /// How far the walk got: `complete` at the thread's start, `lost` where nobody knows the caller.
    enum class Where : std::uint8_t { frame, complete, lost };

    SampledWalk(CodeRules& rules, std::uint32_t generation, StackBounds& bounds, const Registers& registers)
        : SampledWalk(rules, generation, bounds, registers, false) {}

    Where where() const { return where_; }
    /// The frame that it stands at. Where the caller isn't known it is the last one.
    SampledFrame frame() const;
    std::uintptr_t sp() const { return sp_; }
    /// The registers there, from which and from the stack follows all that is further out.
    Registers registers() const { return {pc_, sp_, fp_, is_exact_}; }
    /// Where on the thread's own stack the step outwards reads the return address and the frame pointer, 0 where it
    /// reads none. False: it reads something else besides.
    bool reads(std::uintptr_t& ra_at, std::uintptr_t& fp_at) const {
        ra_at = ra_at_;
        fp_at = fp_at_;
        return !code_.rule.cfa_is_there && code_.rule.cfa_from != base::FrameRule::From::bx && is_own(ra_at_) &&
               is_own(fp_at_);
    }
    /// Whether all between the innermost stack pointer and the stack's beginning is the thread's own, and can be read.
    bool is_on_own_stack() const { return innermost_sp_ >= own_from_ && innermost_sp_ < bounds_.high; }
    /// The stack pointer of its caller at the call; 0: not known.
    std::uintptr_t caller_sp() const { return caller_sp_; }
    /// Goes on to the caller, or ends.
    void step();

  private:
    static constexpr std::size_t most_steps = 4096;

    SampledWalk(CodeRules& rules, std::uint32_t generation, StackBounds& bounds, const Registers& registers,
                bool is_search);
    void look();
    bool can_read(std::uintptr_t address);
    bool is_own(std::uintptr_t address) const {
        return address == 0 || (address >= innermost_sp_ && address >= own_from_ && address < bounds_.high);
    }
    bool find_caller();
    bool find_bx();
    void find_caller_bx(std::uintptr_t cfa);

    CodeRules& rules_;
    std::uint32_t generation_;
    StackBounds& bounds_;
    Registers innermost_;
    std::uintptr_t pc_, sp_, fp_, bx_ = 0, innermost_sp_;
    std::uintptr_t ra_at_ = 0, fp_at_ = 0;
    std::uintptr_t readable_page_ = 0;  ///< page of another stack that is known to be readable
    std::uintptr_t own_from_ = 0;       ///< start of what may be read of the thread's own stack
    std::uintptr_t caller_pc_ = 0, caller_sp_ = 0, caller_fp_ = 0, caller_bx_ = 0;
    CodeRule code_;
    Where where_ = Where::frame;
    std::size_t steps_ = 0;
    bool is_exact_;  ///< the address is an interrupted one
    /// Few rules go by rbx: it is followed from where the first of them was met, to which it is searched for.
    bool knows_bx_ = false, caller_knows_bx_ = false, is_search_ = false;
};

}  // namespace palmette::record
