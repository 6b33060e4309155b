// The frames of CPython programs, read by a thread of its own thread state: in a signal handler or in an MPI call, with
// or without the interpreter's lock. Each evaluation of the interpreter has a mark on the native stack, which says in
// which native frame its Python frames belong.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "palmette/record/sampled_stack.hpp"
#include "palmette/record/texts.hpp"

namespace palmette::record {

/// Where an interpreter keeps things, in bytes; by version.
struct PythonLayout {
    unsigned minor;  ///< of version 3
    /// In a thread state: `current` is where the innermost evaluation (3.12 and older) or frame stands.
    std::uint32_t thread_id, current, root, old_frame, chunk;
    /// In what an evaluation keeps on the native stack.
    std::uint32_t evaluation_frame, evaluation_previous;
    /// In a frame.
    std::uint32_t code, previous, instruction, owner, is_entry;
    /// In a code object.
    std::uint32_t name, file, lines, first_line, instructions;
    /// Where the letters of a text begin.
    std::uint32_t ascii_text, other_text;
};

class PythonFrames {
  public:
    /// Looks for an interpreter in this process. Not to be called from a handler.
    void look_for(trace::SectionHeader& section);
    bool is_known() const { return layout_ != nullptr; }

    /// The Python frames of one walk along a native stack.
    class Walk {
      public:
        /// For the calling thread; meets no frames where it isn't one of Python's. Between its stack pointer and
        /// `high`, where its stack begins, all can be read.
        Walk(PythonFrames& python, std::uintptr_t sp, std::uintptr_t high);
        /// Whether a native frame with these stack pointers, its own and its caller's, is one of the interpreter's
        /// evaluations: then its Python frames stand for it, which are given to `add` from the innermost outwards.
        template <class Add>
        bool replaces(std::uintptr_t sp, std::uintptr_t caller_sp, Add add) {
            if (mark_ == 0 || mark_ < sp || mark_ >= caller_sp) return false;
            begin_frames();
            SampledFrame frame;
            for (Step step = next(frame); step != Step::none; step = next(frame)) {
                add(frame);
                if (step == Step::last) break;
            }
            return true;
        }
        /// Whether something was found to be otherwise than it must be: nothing of it counts.
        bool is_wrong() const { return is_wrong_; }
        /// Whether each evaluation was on the stack, once the walk has met all of that.
        bool is_done() const { return !is_wrong_ && mark_ == 0; }

      private:
        enum class Step : std::uint8_t { none, frame, last };
        void begin_evaluation();
        void begin_frames();
        Step next(SampledFrame& out);
        void end_evaluation(std::uintptr_t outer);
        Step fail();
        bool can_read_frame(std::uintptr_t frame) const;

        PythonFrames& python_;
        const PythonLayout* layout_ = nullptr;
        std::uintptr_t inner_, high_;  ///< the next mark lies between them, unless on another stack
        std::uintptr_t state_ = 0;
        std::uintptr_t evaluation_ = 0;  ///< of 3.12 and older: what the evaluation has on the stack
        std::uintptr_t mark_ = 0;        ///< an address in the evaluation's native frame; 0: there are no more
        std::uintptr_t frame_ = 0;       ///< the next one outwards
        std::uintptr_t chunk_begin_ = 0, chunk_top_ = 0, chunk_end_ = 0;
        std::size_t steps_ = 0;
        bool is_wrong_ = false;
        bool is_first_ = true;
    };

  private:
    static constexpr std::size_t code_slots = std::size_t{1} << 12U, line_slots = std::size_t{1} << 13U;
    static constexpr std::size_t most_steps = 8192;
    /// A code object whose names are in the section. Those are compared each time: it may have gone, and another one
    /// have come to its address.
    struct CodeSlot {
        std::atomic<std::uint64_t> code{0};
        std::atomic<std::uint64_t> names{0};  ///< the file's << 32 | the function's
    };
    struct LineSlot {
        std::atomic<std::uint64_t> key{0};   ///< the code object's address / 16 and the instruction
        std::atomic<std::uint64_t> line{0};  ///< with a hash of the key and the table of lines << 32
    };
    bool describe(std::uintptr_t frame, std::uintptr_t code, bool may_be_gone, SampledFrame& out);
    std::uint32_t line_of(std::uintptr_t code, std::int64_t instruction);
    std::uint32_t search_line(std::int32_t first_line, std::int64_t instruction, const unsigned char* table,
                              std::size_t bytes) const;

    const PythonLayout* layout_ = nullptr;
    std::uintptr_t code_type_ = 0;
    void* (*own_state_)() = nullptr;
    int (*is_finalizing_)() = nullptr;
    Texts texts_;
    CodeSlot* codes_ = nullptr;
    LineSlot* lines_ = nullptr;
};

}  // namespace palmette::record
