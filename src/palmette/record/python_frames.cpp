// Long because the layouts of all known CPython versions stand beside each other.
#include "palmette/record/python_frames.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "palmette/base/readable.hpp"
#include "palmette/record/node_file.hpp"
#include "palmette/record/zeroed.hpp"

namespace palmette::record {
namespace {

/// Layouts by the headers of each version, for 64 bits; members that a version lacks are 0.
constexpr std::array<PythonLayout, 6> layouts{{
    {.minor = 10,
     .thread_id = 176,
     .current = 48,
     .root = 264,
     .old_frame = 24,
     .chunk = 0,
     .outermost = 0,
     .evaluation_frame = 0,
     .evaluation_previous = 8,
     .code = 32,
     .previous = 24,
     .instruction = 96,
     .owner = 0,
     .is_entry = 0,
     .name = 112,
     .file = 104,
     .lines = 120,
     .first_line = 40,
     .instructions = 0,
     .ascii_text = 48,
     .other_text = 72,
     .text_kind = 2,
     .head = 16},
    {.minor = 11,
     .thread_id = 152,
     .current = 56,
     .root = 336,
     .old_frame = 0,
     .chunk = 296,
     .outermost = 0,
     .evaluation_frame = 8,
     .evaluation_previous = 16,
     .code = 32,
     .previous = 48,
     .instruction = 56,
     .owner = 69,
     .is_entry = 68,
     .name = 128,
     .file = 112,
     .lines = 136,
     .first_line = 72,
     .instructions = 184,
     .ascii_text = 48,
     .other_text = 72,
     .text_kind = 2,
     .head = 16},
    {.minor = 12,
     .thread_id = 136,
     .current = 56,
     .root = 272,
     .old_frame = 0,
     .chunk = 232,
     .outermost = 0,
     .evaluation_frame = 0,
     .evaluation_previous = 8,
     .code = 0,
     .previous = 8,
     .instruction = 56,
     .owner = 70,
     .is_entry = 0,
     .name = 128,
     .file = 112,
     .lines = 136,
     .first_line = 68,
     .instructions = 192,
     .ascii_text = 40,
     .other_text = 56,
     .text_kind = 2,
     .head = 16},
    {.minor = 13,
     .thread_id = 152,
     .current = 72,
     .root = 0,
     .old_frame = 0,
     .chunk = 232,
     .outermost = 0,
     .evaluation_frame = 0,
     .evaluation_previous = 0,
     .code = 0,
     .previous = 8,
     .instruction = 56,
     .owner = 70,
     .is_entry = 0,
     .name = 128,
     .file = 112,
     .lines = 136,
     .first_line = 68,
     .instructions = 200,
     .ascii_text = 40,
     .other_text = 56,
     .text_kind = 2,
     .head = 16},
    {.minor = 14,
     .thread_id = 152,
     .current = 72,
     .root = 0,
     .old_frame = 0,
     .chunk = 232,
     .outermost = 0,
     .evaluation_frame = 0,
     .evaluation_previous = 0,
     .code = 0,
     .previous = 8,
     .instruction = 56,
     .owner = 74,
     .is_entry = 0,
     .name = 128,
     .file = 112,
     .lines = 136,
     .first_line = 68,
     .instructions = 208,
     .ascii_text = 40,
     .other_text = 56,
     .text_kind = 2,
     .head = 16},
    {.minor = 15,
     .thread_id = 176,
     .current = 72,
     .root = 0,
     .old_frame = 0,
     .chunk = 256,
     .outermost = 80,
     .evaluation_frame = 0,
     .evaluation_previous = 0,
     .code = 0,
     .previous = 8,
     .instruction = 56,
     .owner = 74,
     .is_entry = 0,
     .name = 128,
     .file = 112,
     .lines = 136,
     .first_line = 68,
     .instructions = 208,
     .ascii_text = 40,
     .other_text = 56,
     .text_kind = 2,
     .head = 16},
}};
/// A frame of 3.12 and newer that stands on the native stack, where an evaluation began.
constexpr unsigned owned_by_native_stack = 3;
/// Offsets behind what an object begins with, whose last word is its type.
constexpr std::uint32_t object_type_bytes = 8, object_size = 0, bytes_of_object = 16, text_length = 0, text_hash = 8,
                        text_state = 16;
/// The hash of a text that nobody has asked for it.
constexpr std::uint64_t no_hash = ~std::uint64_t{0};
/// Offsets in a thread's chunk of frames: its top and limit follow the pointer to it in the thread state.
constexpr std::uint32_t chunk_top = 8, chunk_limit = 16, chunk_data = 24;

template <class Value>
Value at(std::uintptr_t address, std::uint32_t offset = 0) {
    Value value{};
    std::memcpy(&value, reinterpret_cast<const void*>(address + offset), sizeof value);
    return value;
}
std::uintptr_t pointer_at(std::uintptr_t address, std::uint32_t offset) { return at<std::uintptr_t>(address, offset); }

/// A text of Python's as UTF-8, without a copy where it is ASCII. Longer ones end early.
class Utf8 {
  public:
    Utf8(const PythonLayout& layout, std::uintptr_t text) {
        const std::uint32_t state = at<std::uint32_t>(text, layout.head + text_state) >> layout.text_kind;
        const unsigned kind = state & 7U;
        const bool is_compact = (state >> 3U & 1U) != 0;
        const bool is_ascii = (state >> 4U & 1U) != 0;
        const auto length = at<std::uint64_t>(text, layout.head + text_length);
        if (!is_compact || length > most) return;
        if (is_ascii) {
            view_ = {reinterpret_cast<const char*>(text + layout.ascii_text), length};
            return;
        }
        std::size_t bytes = 0;
        for (std::uint64_t i = 0; i < length && bytes + 4 <= buffer_.size(); ++i) {
            const std::uintptr_t letter = text + layout.other_text + i * kind;
            const std::uint32_t code = kind == 1   ? at<std::uint8_t>(letter)
                                       : kind == 2 ? at<std::uint16_t>(letter)
                                                   : at<std::uint32_t>(letter);
            const auto put = [&](std::uint32_t byte) { buffer_[bytes++] = static_cast<char>(byte); };
            if (code < 0x80U) {
                put(code);
            } else if (code < 0x800U) {
                put(0xC0U | code >> 6U);
                put(0x80U | (code & 0x3FU));
            } else if (code < 0x10000U) {
                put(0xE0U | code >> 12U);
                put(0x80U | (code >> 6U & 0x3FU));
                put(0x80U | (code & 0x3FU));
            } else {
                put(0xF0U | code >> 18U);
                put(0x80U | (code >> 12U & 0x3FU));
                put(0x80U | (code >> 6U & 0x3FU));
                put(0x80U | (code & 0x3FU));
            }
        }
        view_ = {buffer_.data(), bytes};
    }
    std::string_view view() const { return view_; }

  private:
    static constexpr std::uint64_t most = 4096;
    std::array<char, 256> buffer_;
    std::string_view view_;
};

/// The key of an instruction of a code object.
std::uint64_t line_key(std::uintptr_t code, std::int64_t instruction) {
    return code >> 4U | static_cast<std::uint64_t>(instruction) << 44U;
}

bool is_plausible(std::uintptr_t address) { return address > 4096 && address % 8 == 0 && address >> 48U == 0; }

}  // namespace

void PythonFrames::look_for(trace::SectionHeader& section) {
    const auto symbol = [](const char* name) { return dlsym(RTLD_DEFAULT, name); };
    const auto version = reinterpret_cast<const char* (*)()>(symbol("Py_GetVersion"));
    own_state_ = reinterpret_cast<void* (*)()>(symbol("PyGILState_GetThisThreadState"));
    code_type_ = reinterpret_cast<std::uintptr_t>(symbol("PyCode_Type"));
    void* const finalizing = symbol("_Py_IsFinalizing");
    is_finalizing_ = reinterpret_cast<int (*)()>(finalizing ? finalizing : symbol("Py_IsFinalizing"));
    if (!version || !own_state_ || code_type_ == 0 || !is_finalizing_) return;
    int major = 0;
    int minor = 0;
    if (std::sscanf(version(), "%d.%d", &major, &minor) != 2) return;
    section.sampling.python.store(static_cast<std::uint32_t>(major) << 24U | static_cast<std::uint32_t>(minor) << 16U);
    const PythonLayout* found = nullptr;
    const bool is_free_threaded = std::strstr(version(), "free-threading") != nullptr;
    for (const PythonLayout& layout : layouts)
        if (major == 3 && static_cast<int>(layout.minor) == minor && !is_free_threaded) found = &layout;
    // A build for debugging has other places, too. Where no thread of Python's begins to record, nothing can be tried.
    const auto state = reinterpret_cast<std::uintptr_t>(own_state_());
    const bool fits = found && (state == 0 || (base::is_readable(state, found->thread_id + 8) &&
                                               pointer_at(state, found->thread_id) == pthread_self()));
    if (!fits) {
        section.sampling.python_is_refused.store(1);
        if (speaks_for_node())
            std::fprintf(stderr,
                         "palmette: --sample: the frames of this Python (%.24s) aren't known; its native frames are "
                         "recorded\n",
                         version());
        return;
    }
    texts_.attach(section);
    codes_ = zeroed<CodeSlot>(code_slots);
    lines_ = zeroed<LineSlot>(line_slots);
    layout_ = found;
}

PythonFrames::Walk::Walk(PythonFrames& python, std::uintptr_t sp, std::uintptr_t high)
    : python_(&python), layout_(python.layout_), sp_(sp), high_(high), inner_(sp) {
    if (!layout_) return;
    state_ = reinterpret_cast<std::uintptr_t>(python.own_state_());
    // At the end other threads' states go while they are on their stacks.
    if (state_ == 0 || python.is_finalizing_() != 0) return;
    if (layout_->chunk != 0) {
        chunk_begin_ = pointer_at(state_, layout_->chunk);
        if (chunk_begin_ != 0) chunk_begin_ += chunk_data;
        chunk_top_ = pointer_at(state_, layout_->chunk + chunk_top);
        chunk_end_ = pointer_at(state_, layout_->chunk + chunk_limit);
    }
    if (layout_->minor <= 12) at_.evaluation = pointer_at(state_, layout_->current);
    if (layout_->minor == 10) at_.frame = pointer_at(state_, layout_->old_frame);
    if (layout_->minor >= 13) at_.frame = pointer_at(state_, layout_->current);
    begin_evaluation();
}

bool PythonFrames::Walk::stand(const Place& place) {
    if (!is_on_stack(place.mark, sizeof place.mark)) return false;
    at_ = place;
    inner_ = place.evaluation;
    steps_ = 0;
    is_wrong_ = false;
    return true;
}

PythonFrames::Walk::Step PythonFrames::Walk::fail() {
    is_wrong_ = true;
    at_.mark = 0;
    return Step::none;
}

/// Finds the mark of the evaluation that is the next one outwards.
void PythonFrames::Walk::begin_evaluation() {
    at_.mark = 0;
    if (layout_->minor <= 12) {
        if (at_.evaluation == 0 || at_.evaluation == state_ + layout_->root) {
            // Without an evaluation there is no frame either.
            if (at_.frame != 0) fail();
            return;
        }
        const bool is_there = at_.evaluation > inner_ && is_on_stack(at_.evaluation, 24);
        if (!is_plausible(at_.evaluation) || (!is_there && !base::is_readable(at_.evaluation, 24))) {
            fail();
            return;
        }
        inner_ = at_.evaluation;
        at_.mark = at_.evaluation;
        // What an evaluation of 3.11 or 3.12 says that its innermost frame is.
        if (layout_->minor >= 11) at_.frame = pointer_at(at_.evaluation, layout_->evaluation_frame);
        return;
    }
    // The outermost one of 3.15 lies in the thread's state and runs nothing.
    if (layout_->outermost != 0 && at_.frame == pointer_at(state_, layout_->outermost)) at_.frame = 0;
    std::uintptr_t frame = at_.frame;
    for (std::size_t i = 0; frame != 0 && i < most_steps; ++i) {
        if (!can_read_frame(frame)) break;
        if (at<std::uint8_t>(frame, layout_->owner) == owned_by_native_stack) {
            at_.mark = frame;
            return;
        }
        frame = pointer_at(frame, layout_->previous);
    }
    if (at_.frame != 0) fail();
}

bool PythonFrames::Walk::can_read_frame(std::uintptr_t frame) const {
    if (!is_plausible(frame)) return false;
    constexpr std::size_t bytes = 104;
    // What lies above the top of the thread's frames isn't one any more, or not yet.
    if (frame >= chunk_begin_ && frame < chunk_end_) return frame + bytes - 32 <= chunk_top_;
    return is_on_stack(frame, bytes) || base::is_readable(frame, bytes);
}

PythonFrames::Walk::Step PythonFrames::Walk::skip() {
    if (++steps_ > most_steps || !can_read_frame(at_.frame)) return fail();
    is_first_ = false;
    const std::uintptr_t frame = at_.frame;
    const std::uintptr_t outer = pointer_at(frame, layout_->previous);
    if (layout_->minor >= 12 && at<std::uint8_t>(frame, layout_->owner) == owned_by_native_stack) {
        if (layout_->minor >= 13 && frame != at_.mark) return fail();
        end_evaluation(outer);
        return Step::none;
    }
    const bool is_last =
        layout_->minor == 10 || (layout_->minor == 11 && at<std::uint8_t>(frame, layout_->is_entry) != 0);
    if (is_last) {
        end_evaluation(outer);
        return is_wrong_ ? Step::none : Step::last;
    }
    at_.frame = outer;
    return Step::frame;
}

PythonFrames::Walk::Step PythonFrames::Walk::next(SampledFrame& out, FrameContent& seen) {
    const std::uintptr_t frame = at_.frame;
    const bool may_be_gone = is_first_ && layout_->minor <= 11;
    const Step step = skip();
    seen.code = 0;
    if (step != Step::none && !python_->describe(frame, may_be_gone, out, seen)) return fail();
    return step;
}

void PythonFrames::Walk::end_evaluation(std::uintptr_t outer) {
    at_.frame = outer;
    if (layout_->minor <= 12) {
        at_.evaluation = pointer_at(at_.evaluation, layout_->evaluation_previous);
        begin_evaluation();
        const std::uintptr_t there = at_.mark != 0 ? at_.mark : state_ + layout_->root;
        if (!is_wrong_ && layout_->minor >= 11 && pointer_at(there, layout_->evaluation_frame) != outer) fail();
        return;
    }
    begin_evaluation();
}

std::uintptr_t PythonFrames::type_of(std::uintptr_t object) const {
    return pointer_at(object, layout_->head - object_type_bytes);
}

/// The lowest bits of a reference to it say who counts that.
std::uintptr_t PythonFrames::code_of(std::uintptr_t frame) const {
    return pointer_at(frame, layout_->code) & ~std::uintptr_t{7};
}

/// Where a frame stands, as it has it: a number until 3.10, else an address.
std::uint64_t PythonFrames::position_of(std::uintptr_t frame) const {
    if (layout_->minor == 10) return at<std::uint32_t>(frame, layout_->instruction);
    return pointer_at(frame, layout_->instruction);
}

/// The number of that instruction.
std::int64_t PythonFrames::instruction_of(std::uintptr_t frame, std::uintptr_t code) const {
    if (layout_->minor == 10) return at<std::int32_t>(frame, layout_->instruction);
    return static_cast<std::int64_t>(position_of(frame) - code - layout_->instructions) / 2;
}

bool PythonFrames::is_frame(std::uintptr_t frame, const FrameContent& seen) const {
    return code_of(frame) == seen.code && position_of(frame) == seen.position;
}

/// Whether a text is that of `number`, by the hash that Python keeps of it, else by its letters.
bool PythonFrames::is_text(std::uintptr_t text, std::uint64_t hash, std::uint32_t number) const {
    const auto now = at<std::uint64_t>(text, layout_->head + text_hash);
    if (now != hash) return false;
    return hash != no_hash || texts_.is(number, Utf8(*layout_, text).view());
}

bool PythonFrames::is_code(const FrameContent& seen) const {
    return type_of(seen.code) == code_type_ && pointer_at(seen.code, layout_->name) == seen.name &&
           pointer_at(seen.code, layout_->file) == seen.file && pointer_at(seen.code, layout_->lines) == seen.lines &&
           is_text(seen.name, seen.name_hash, seen.name_number) &&
           is_text(seen.file, seen.file_hash, seen.file_number) && line_check_of(seen) == seen.line_check;
}

bool PythonFrames::describe(std::uintptr_t frame, bool may_be_gone, SampledFrame& out, FrameContent& seen) {
    const std::uintptr_t code = code_of(frame);
    if (!is_plausible(code)) return false;
    CodeSlot& slot = codes_[(code * 0x9E3779B97F4A7C15ULL >> 40U) % code_slots];
    const bool is_known = slot.code.load(std::memory_order_acquire) == code;
    const bool must_ask = !is_known || may_be_gone;
    // Until 3.11 a frame that is about to go stands there after it has let its code go.
    if (must_ask && !base::is_readable(code, layout_->lines + 8)) return false;
    if (type_of(code) != code_type_) return false;
    seen.file = pointer_at(code, layout_->file);
    seen.name = pointer_at(code, layout_->name);
    seen.lines = pointer_at(code, layout_->lines);
    if (!is_plausible(seen.file) || !is_plausible(seen.name) || !is_plausible(seen.lines)) return false;
    if (must_ask &&
        !(base::is_readable(seen.file, 128) && base::is_readable(seen.name, 128) && base::is_readable(seen.lines, 64)))
        return false;
    seen.name_hash = at<std::uint64_t>(seen.name, layout_->head + text_hash);
    seen.file_hash = at<std::uint64_t>(seen.file, layout_->head + text_hash);
    const Utf8 file_text(*layout_, seen.file);
    const Utf8 name_text(*layout_, seen.name);
    std::uint64_t names = is_known ? slot.names.load(std::memory_order_relaxed) : 0;
    seen.file_number = static_cast<std::uint32_t>(names >> 32U);
    seen.name_number = static_cast<std::uint32_t>(names);
    if (names == 0 || !texts_.is(seen.file_number, file_text.view()) ||
        !texts_.is(seen.name_number, name_text.view())) {
        seen.file_number = texts_.number_of(file_text.view());
        seen.name_number = texts_.number_of(name_text.view());
        slot.names.store(std::uint64_t{seen.file_number} << 32U | seen.name_number, std::memory_order_relaxed);
        slot.code.store(code, std::memory_order_release);
    }
    seen.code = code;
    seen.position = position_of(frame);
    seen.instruction = instruction_of(frame, code);
    seen.line_check = line_check_of(seen);
    out.kind = trace::ContextKind::python;
    out.module = seen.file_number;
    out.offset = std::uint64_t{seen.name_number} << 32U | line_of(seen);
    out.is_innermost = false;
    return true;
}

/// Differs where the line may; its lower half is 0. 0: the function's first line stands for all.
std::uint64_t PythonFrames::line_check_of(const FrameContent& seen) const {
    constexpr std::int64_t most_instructions = std::int64_t{1} << 20U;
    constexpr std::uint64_t most_bytes = std::uint64_t{1} << 24U;
    const auto bytes = at<std::uint64_t>(seen.lines, layout_->head + object_size);
    if (seen.instruction < 0 || seen.instruction >= most_instructions || bytes > most_bytes) return 0;
    const auto first_line = at<std::int32_t>(seen.code, layout_->first_line);
    std::uint64_t check = line_key(seen.code, seen.instruction) ^ seen.lines << 7U ^ bytes << 48U ^
                          static_cast<std::uint64_t>(first_line) << 24U;
    if (bytes >= 16)
        check ^=
            at<std::uint64_t>(seen.lines, layout_->head + bytes_of_object + static_cast<std::uint32_t>(bytes / 2) - 4);
    check = (check * 0x9E3779B97F4A7C15ULL) & 0xFFFFFFFF00000000ULL;
    return check != 0 ? check : std::uint64_t{1} << 32U;
}

std::uint32_t PythonFrames::line_of(const FrameContent& seen) {
    const auto first_line = at<std::int32_t>(seen.code, layout_->first_line);
    if (seen.line_check == 0) return static_cast<std::uint32_t>(first_line);
    const std::uint64_t key = line_key(seen.code, seen.instruction);
    LineSlot& slot = lines_[(key * 0x9E3779B97F4A7C15ULL >> 40U) % line_slots];
    if (slot.key.load(std::memory_order_acquire) == key) {
        const std::uint64_t known = slot.line.load(std::memory_order_relaxed);
        if ((known & 0xFFFFFFFF00000000ULL) == seen.line_check) return static_cast<std::uint32_t>(known);
    }
    const auto* const table = reinterpret_cast<const unsigned char*>(seen.lines + layout_->head + bytes_of_object);
    const std::uint32_t line =
        search_line(first_line, seen.instruction, table, at<std::uint64_t>(seen.lines, layout_->head + object_size));
    slot.line.store(seen.line_check | line, std::memory_order_relaxed);
    slot.key.store(key, std::memory_order_release);
    return line;
}

namespace {

/// Numbers of 6 bits a byte, the lower ones first.
class LineTable {
  public:
    LineTable(const unsigned char* table, std::size_t bytes) : at_(table), end_(table + bytes) {}
    bool done() const { return at_ >= end_; }
    unsigned take() { return at_ < end_ ? *at_++ : 0; }
    /// Up to the next entry, whose first byte alone has its upper bit set.
    void skip_entry() {
        while (at_ < end_ && (*at_ & 0x80U) == 0) ++at_;
    }
    std::int32_t number() {
        std::uint32_t value = 0;
        for (unsigned shift = 0; shift < 30; shift += 6) {
            const unsigned byte = take();
            value |= (byte & 0x3FU) << shift;
            if ((byte & 0x40U) == 0) break;
        }
        return (value & 1U) != 0 ? -static_cast<std::int32_t>(value >> 1U) : static_cast<std::int32_t>(value >> 1U);
    }

  private:
    const unsigned char* at_;
    const unsigned char* end_;
};

}  // namespace

std::uint32_t PythonFrames::search_line(std::int32_t first_line, std::int64_t instruction, const unsigned char* table,
                                        std::size_t bytes) const {
    std::int32_t line = first_line;
    if (layout_->minor == 10) {
        std::int64_t end = 0;
        for (std::size_t i = 0; i + 1 < bytes; i += 2) {
            const auto delta = static_cast<std::int8_t>(table[i + 1]);
            constexpr std::int8_t no_line = -128;
            if (delta != no_line) line += delta;
            end += table[i];
            if (2 * instruction < end) return delta == no_line ? 0 : static_cast<std::uint32_t>(line);
        }
        return static_cast<std::uint32_t>(first_line);
    }
    LineTable entries(table, bytes);
    std::int64_t end = 0;
    while (!entries.done()) {
        const unsigned head = entries.take();
        const unsigned kind = head >> 3U & 15U;
        constexpr unsigned one_line = 10, other_lines = 12, without_columns = 13, long_form = 14, none = 15;
        if (kind >= one_line && kind <= other_lines)
            line += static_cast<std::int32_t>(kind - one_line);
        else if (kind == without_columns || kind == long_form)
            line += entries.number();
        entries.skip_entry();
        end += (head & 7U) + 1;
        if (instruction < end) return kind == none ? 0 : static_cast<std::uint32_t>(line);
    }
    return static_cast<std::uint32_t>(first_line);
}

}  // namespace palmette::record
