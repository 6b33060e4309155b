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

/// Offsets of members of an interpreter's structures, in bytes; by version.
struct PythonLayout {
    unsigned minor;  ///< minor version of Python 3
    /// Members of a thread state: `current` is where the innermost evaluation (3.12 and older) or frame stands.
    std::uint32_t thread_id, current, root, old_frame, chunk, outermost;
    /// Members of what an evaluation keeps on the native stack.
    std::uint32_t evaluation_frame, evaluation_previous;
    /// Members of a frame.
    std::uint32_t code, previous, instruction, owner, is_entry;
    /// Members of a code object.
    std::uint32_t name, file, lines, first_line, instructions;
    /// Where the letters of a text begin.
    std::uint32_t ascii_text, other_text;
    std::uint32_t text_kind;  ///< the lowest bit of a text's state that tells how long letters are
    std::uint32_t head;       ///< bytes of what all objects begin with
};

class PythonFrames {
  public:
    /// Looks for an interpreter in this process. Not to be called from a handler.
    void look_for(trace::SectionHeader& section);
    bool is_known() const { return layout_ != nullptr; }

    /// What a frame and its code object held when it was described: while they hold the same, it is the same frame.
    struct FrameContent {
        std::uintptr_t code = 0;  ///< code object; 0: a frame of the interpreter's own, which nothing is said of
        std::uintptr_t name = 0, file = 0, lines = 0;
        std::uint64_t position = 0;  ///< the frame's position, as it holds it
        std::int64_t instruction = 0;
        std::uint64_t name_hash = 0, file_hash = 0, line_check = 0;
        std::uint32_t name_number = 0, file_number = 0;
    };
    /// Whether the frame runs the same code object at the same instruction.
    bool is_frame(std::uintptr_t frame, const FrameContent& seen) const;
    /// Whether the code object of such a frame, one that lives, has the same names and lines: another one may have come
    /// to its address.
    bool is_code(const FrameContent& seen) const;

    /// The Python frames of one walk along a native stack.
    class Walk {
      public:
        /// For the calling thread; meets no frames where it isn't one of Python's. Between its stack pointer and
        /// `high`, where its stack begins, all can be read; `high` for both: on another stack.
        Walk(PythonFrames& python, std::uintptr_t sp, std::uintptr_t high);

        /// The position of a walk: what lies further out follows from it.
        struct Place {
            std::uintptr_t evaluation = 0;  ///< 3.12 and older: what the evaluation has on the stack
            std::uintptr_t mark = 0;        ///< an address in the evaluation's native frame; 0: there are no more
            std::uintptr_t frame = 0;       ///< the next one outwards
            bool operator==(const Place&) const = default;
        };
        const Place& place() const { return at_; }
        /// Goes on from elsewhere on the thread's own stack. False: that isn't there any more.
        bool stand(const Place& place);

        /// Whether a native frame with these stack pointers, its own and its caller's, is the one of the interpreter's
        /// next evaluation: then its Python frames stand for it.
        bool is_in(std::uintptr_t sp, std::uintptr_t caller_sp) const {
            return at_.mark != 0 && at_.mark >= sp && at_.mark < caller_sp;
        }
        /// `frame`: there is one more, from the innermost outwards; `last`: the evaluation's last one; `none`: one that
        /// isn't told, behind the last; or something is wrong.
        enum class Step : std::uint8_t { none, frame, last };
        Step next(SampledFrame& out, FrameContent& seen);
        /// A step like the one above, without looking at the frame's code.
        Step skip();
        /// Gives the frames of such an evaluation to `add`.
        template <class Add>
        void replace(Add add) {
            SampledFrame frame;
            FrameContent seen;
            for (Step step = next(frame, seen); step != Step::none; step = next(frame, seen)) {
                add(frame);
                if (step == Step::last) break;
            }
        }
        /// Whether something was found to be otherwise than it must be: nothing of it counts.
        bool is_wrong() const { return is_wrong_; }
        /// Whether each evaluation was on the stack, once the walk has met all of that.
        bool is_done() const { return !is_wrong_ && at_.mark == 0; }

      private:
        void begin_evaluation();
        void end_evaluation(std::uintptr_t outer);
        Step fail();
        bool is_on_stack(std::uintptr_t address, std::size_t bytes) const {
            return address >= sp_ && address < high_ && bytes <= high_ - address;
        }
        bool can_read_frame(std::uintptr_t frame) const;

        PythonFrames* python_;
        const PythonLayout* layout_ = nullptr;
        std::uintptr_t sp_, high_;
        std::uintptr_t inner_;  ///< evaluations further out stand further up, unless on another stack
        std::uintptr_t state_ = 0;
        Place at_;
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
    bool describe(std::uintptr_t frame, bool may_be_gone, SampledFrame& out, FrameContent& seen);
    std::uintptr_t type_of(std::uintptr_t object) const;
    std::uintptr_t code_of(std::uintptr_t frame) const;
    std::uint64_t position_of(std::uintptr_t frame) const;
    std::int64_t instruction_of(std::uintptr_t frame, std::uintptr_t code) const;
    std::uint64_t line_check_of(const FrameContent& seen) const;
    std::uint32_t line_of(const FrameContent& seen);
    bool is_text(std::uintptr_t text, std::uint64_t hash, std::uint32_t number) const;
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
