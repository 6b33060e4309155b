// A thread's last sampled stack: of the next one, which mostly is the same but for some inner frames, those alone are
// looked up. What is taken over is what a walk would find, since all that it would read holds the same as then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "palmette/record/contexts.hpp"
#include "palmette/record/python_frames.hpp"
#include "palmette/record/sampled_stack.hpp"

namespace palmette::record {

class LastStack {
  public:
    struct Result {
        std::uint32_t node = 0;  ///< the innermost frame's node
        bool is_short = false;   ///< inner frames found no place
        bool is_lost = false;    ///< the stack didn't reach the thread's start
    };
    /// Walks the stack of the calling thread, and finds its node. `root`: the region's that it is in, 0 outside of all.
    /// `python`: null for native frames alone. False: it is
    /// too deep for this, or Python's frames can't be right. Async-signal-safe. Cost: 2 ns for each frame that is as
    /// before, 30 ns for others.
    bool find(CodeRules& rules, PythonFrames* python, std::uint32_t generation, StackBounds& bounds,
              const Registers& registers, Contexts& contexts, std::uint32_t root, Result& out);

  private:
    static constexpr std::size_t most = 255;
    static constexpr std::int32_t not_read = INT32_MIN;

    /// A step along the native stack, and what it reads of that.
    struct Native {
        std::uintptr_t pc, sp, fp;
        std::int32_t ra_at, fp_at;  ///< from `sp`; or not_read
        std::uint32_t node;
        std::uint16_t depth;   ///< frames up to this one
        std::uint16_t python;  ///< how many of Python's lie further out
        bool is_exact, is_replaced, can_be_kept;
    };
    /// A step along Python's frames, and what its frame held.
    struct Python {
        PythonFrames::Walk::Place place;
        PythonFrames::FrameContent seen;
        std::uint32_t node;
        std::uint16_t depth;
        std::uint16_t native;  ///< how many steps of the native stack lead to it, that of its evaluation too
    };

    void forget() { native_count_ = python_count_ = 0; }
    void see_what_stays(std::uintptr_t sp, PythonFrames* python, const PythonFrames::Walk* walk);
    bool is_at(const Native& step, const Registers& registers) const {
        return step.pc == registers.pc && step.sp == registers.sp && step.fp == registers.fp &&
               step.is_exact == registers.is_exact;
    }
    bool meets_native(const Registers& registers, const PythonFrames* python, const PythonFrames::Walk* walk);
    bool meets_python(const Registers& registers, const PythonFrames& python, const PythonFrames::Walk& walk);
    bool has_same_code(std::size_t count, const PythonFrames* python);
    Native* add_native();
    Python* add_python();
    bool emit(const SampledFrame& frame);
    bool take(Contexts& contexts, Result& out);

    static std::size_t slot_of(std::uintptr_t address) {
        return static_cast<std::size_t>(address * 0x9E3779B97F4A7C15ULL >> 56U);
    }

    // From the outermost inwards; new ones at the other end until all are there.
    std::array<Native, most> native_;
    std::array<Python, most> python_;
    std::array<SampledFrame, SampledFrames::most_inner + SampledFrames::most_outer> emitted_;  ///< from the innermost
    std::array<std::uint8_t, 256> native_at_{}, python_at_{};  ///< by address: the index + 1
    std::size_t native_count_ = 0, python_count_ = 0;
    std::size_t native_stays_ = 0, python_stays_ = 0;  ///< frames whose steps would be the same again
    std::size_t native_kept_ = 0, python_kept_ = 0;    ///< frames that the walk has met
    std::size_t native_added_ = 0, python_added_ = 0, emitted_count_ = 0;
    bool python_met_ = false;  ///< the innermost that is kept is one of Python's
    std::uint32_t generation_ = 0, root_ = 0;
};

}  // namespace palmette::record
