#include "palmette/record/last_stack.hpp"

#include <cstring>
#include <optional>

namespace palmette::record {
namespace {

std::uintptr_t stack_word(std::uintptr_t address) {
    std::uintptr_t word = 0;
    std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);
    return word;
}

std::uintptr_t beyond(std::uintptr_t sp, std::int32_t offset) {
    return sp + static_cast<std::uintptr_t>(static_cast<std::intptr_t>(offset));
}

}  // namespace

bool LastStack::find(CodeRules& rules, PythonFrames* python, std::uint32_t generation, StackBounds& bounds,
                     const Registers& registers, Contexts& contexts, std::uint32_t root, Result& out) {
    if (generation != generation_ || root != root_) forget();
    generation_ = generation;
    root_ = root;
    SampledWalk walk(rules, generation, bounds, registers);
    const bool is_own = walk.is_on_own_stack();
    std::optional<PythonFrames::Walk> frames;
    if (python) frames.emplace(*python, registers.sp, is_own ? bounds.high : registers.sp);
    PythonFrames::Walk* const python_walk = frames ? &*frames : nullptr;
    native_stays_ = python_stays_ = 0;
    if (is_own) see_what_stays(registers.sp, python, python_walk);
    native_kept_ = python_kept_ = native_added_ = python_added_ = emitted_count_ = 0;
    python_met_ = false;
    const auto give_up = [&] {
        forget();
        return false;
    };
    for (; walk.where() == SampledWalk::Where::frame; walk.step()) {
        const Registers here = walk.registers();
        const bool is_replaced = frames && frames->is_in(here.sp, walk.caller_sp());
        for (bool is_last = !is_replaced; !is_last;) {
            if (meets_python(here, *python, *frames)) return take(contexts, out) || give_up();
            Python* const step = add_python();
            if (!step) return give_up();
            step->place = frames->place();
            SampledFrame frame;
            const auto found = frames->next(frame, step->seen);
            if (frames->is_wrong()) return give_up();
            is_last = found != PythonFrames::Walk::Step::frame;
            if (step->seen.code != 0 && !emit(frame)) return give_up();
        }
        if (meets_native(here, python, python_walk)) return take(contexts, out) || give_up();
        Native* const step = add_native();
        if (!step) return give_up();
        std::uintptr_t ra_at = 0;
        std::uintptr_t fp_at = 0;
        step->can_be_kept = walk.reads(ra_at, fp_at) && is_own;
        step->pc = here.pc;
        step->sp = here.sp;
        step->fp = here.fp;
        step->is_exact = here.is_exact;
        step->is_replaced = is_replaced;
        step->ra_at = ra_at == 0 ? not_read : static_cast<std::int32_t>(ra_at - here.sp);
        step->fp_at = fp_at == 0 ? not_read : static_cast<std::int32_t>(fp_at - here.sp);
        if (!is_replaced && !emit(walk.frame())) return give_up();
    }
    out.is_lost = walk.where() == SampledWalk::Where::lost;
    if (frames && (out.is_lost ? frames->is_wrong() : !frames->is_done())) return give_up();
    if (out.is_lost) {
        // As a step of its own, which leads nowhere.
        Native* const step = add_native();
        if (!step || !emit(walk.frame())) return give_up();
        *step = {};
    }
    if (!take(contexts, out)) return give_up();
    if (out.is_lost) forget();
    return true;
}

/// Reads again what the steps of the last walk have read, from the outermost inwards: loads that needn't wait for each
/// other.
void LastStack::see_what_stays(std::uintptr_t sp, PythonFrames* python, const PythonFrames::Walk* walk) {
    std::size_t i = 0;
    for (; i < native_count_; ++i) {
        const Native& step = native_[i];
        // What is below the stack pointer isn't there any more.
        if (!step.can_be_kept || step.sp < sp) break;
        const std::uintptr_t caller_pc = i == 0 ? 0 : native_[i - 1].pc;
        if (step.ra_at != not_read && stack_word(beyond(step.sp, step.ra_at)) != caller_pc) break;
        if (step.fp_at != not_read && i != 0 && stack_word(beyond(step.sp, step.fp_at)) != native_[i - 1].fp) break;
    }
    native_stays_ = i;
    if (!walk) return;
    PythonFrames::Walk probe = *walk;
    PythonFrames::Walk::Place outer;
    for (i = 0; i < python_count_; ++i) {
        const Python& step = python_[i];
        if (!probe.stand(step.place)) break;
        probe.skip();
        if (probe.is_wrong()) break;
        if (i == 0 ? probe.place().mark != 0 : probe.place() != outer) break;
        if (step.seen.code != 0 && !python->is_frame(step.place.frame, step.seen)) break;
        outer = step.place;
    }
    python_stays_ = i;
}

/// Whether the outermost `count` of Python's frames, which are known to live, run the code that they ran before.
bool LastStack::has_same_code(std::size_t count, const PythonFrames* python) {
    for (std::size_t i = 0; i < count; ++i) {
        if (python_[i].seen.code == 0 || python->is_code(python_[i].seen)) continue;
        python_stays_ = i;
        return false;
    }
    return true;
}

bool LastStack::meets_native(const Registers& registers, const PythonFrames* python, const PythonFrames::Walk* walk) {
    const std::size_t at = native_at_[slot_of(registers.sp)];
    if (at == 0 || at > native_stays_) return false;
    const Native& step = native_[at - 1];
    if (!is_at(step, registers) || step.python > python_stays_) return false;
    if (step.python == 0 ? walk && walk->place().mark != 0 : walk->place() != python_[step.python - 1U].place)
        return false;
    if (!has_same_code(step.python, python)) return false;
    native_kept_ = at;
    python_kept_ = step.python;
    return true;
}

bool LastStack::meets_python(const Registers& registers, const PythonFrames& python, const PythonFrames::Walk& walk) {
    const std::size_t at = python_at_[slot_of(walk.place().frame)];
    if (at == 0 || at > python_stays_) return false;
    const Python& step = python_[at - 1];
    if (step.place != walk.place() || step.native > native_stays_) return false;
    if (!is_at(native_[step.native - 1U], registers) || !has_same_code(at, &python)) return false;
    native_kept_ = step.native;
    python_kept_ = at;
    python_met_ = true;
    return true;
}

LastStack::Native* LastStack::add_native() {
    if (native_stays_ + native_added_ == most) return nullptr;
    return &native_[most - ++native_added_];
}

LastStack::Python* LastStack::add_python() {
    if (python_stays_ + python_added_ == most) return nullptr;
    Python* const out = &python_[most - ++python_added_];
    out->native = static_cast<std::uint16_t>(native_added_);
    return out;
}

bool LastStack::emit(const SampledFrame& frame) {
    if (emitted_count_ == emitted_.size()) return false;
    emitted_[emitted_count_++] = frame;
    return true;
}

/// Puts what was added behind what is kept, and finds the nodes. False: the stack is too deep.
bool LastStack::take(Contexts& contexts, Result& out) {
    std::uint32_t node = root_;
    std::size_t depth = 0;
    if (python_met_ || native_kept_ != 0) {
        node = python_met_ ? python_[python_kept_ - 1].node : native_[native_kept_ - 1].node;
        depth = python_met_ ? python_[python_kept_ - 1].depth : native_[native_kept_ - 1].depth;
    }
    if (depth + emitted_count_ > emitted_.size()) return false;
    std::memmove(&native_[native_kept_], &native_[most - native_added_], native_added_ * sizeof native_[0]);
    std::memmove(&python_[python_kept_], &python_[most - python_added_], python_added_ * sizeof python_[0]);
    native_count_ = native_kept_ + native_added_;
    python_count_ = python_kept_ + python_added_;
    const auto go_inwards = [&] {
        const std::uint32_t next = contexts.child_of(node, emitted_[--emitted_count_]);
        if (next == 0) return false;
        node = next;
        ++depth;
        return true;
    };
    std::size_t python = python_kept_;
    // Of the native frame that `outer` steps lead to, which was the one behind `added` of the new ones.
    const auto take_python = [&](std::size_t added, std::size_t outer) {
        for (; python < python_count_ && python_[python].native == added; ++python) {
            Python& step = python_[python];
            step.native = static_cast<std::uint16_t>(outer);
            if (step.seen.code != 0 && !go_inwards()) return false;
            step.node = node;
            step.depth = static_cast<std::uint16_t>(depth);
            python_at_[slot_of(step.place.frame)] = static_cast<std::uint8_t>(python + 1);
        }
        return true;
    };
    bool has_place = take_python(native_added_, native_kept_);
    for (std::size_t i = native_kept_; has_place && i < native_count_; ++i) {
        Native& step = native_[i];
        step.python = static_cast<std::uint16_t>(python);
        if (!step.is_replaced && !go_inwards()) {
            has_place = false;
            break;
        }
        step.node = node;
        step.depth = static_cast<std::uint16_t>(depth);
        native_at_[slot_of(step.sp)] = static_cast<std::uint8_t>(i + 1);
        has_place = take_python(native_count_ - 1 - i, i + 1);
    }
    out.node = node;
    out.is_short = !has_place;
    if (!has_place) forget();
    return true;
}

}  // namespace palmette::record
