#include "palmette/base/frame_rules.hpp"

#include <link.h>

#include <array>
#include <optional>

#include "palmette/base/unwind_tables.hpp"

namespace palmette::base {
namespace {

#if defined(__aarch64__)
constexpr std::uint64_t fp_number = 29, sp_number = 31, bx_number = ~std::uint64_t{0};
#else
constexpr std::uint64_t fp_number = 6, sp_number = 7, bx_number = 3;
#endif

/// Where a register of the caller's is.
struct SavedRegister {
    enum class How : std::uint8_t { same, undefined, at, other } how = How::same;
    FrameRule::From from = FrameRule::From::cfa;
    std::int64_t offset = 0;
};

struct State {
    bool cfa_known = false, cfa_is_there = false;
    std::uint64_t cfa_register = 0;
    std::int64_t cfa_offset = 0;
    SavedRegister fp, ra, bx;
};

/// The value of an expression: a register and an offset, or no register; and whether the value lies there.
struct Value {
    bool has_register = false, is_there = false;
    std::uint64_t base = 0;
    std::int64_t offset = 0;
};

/// Runs an expression of a table, as far as compilers write them: a register and an offset, whether the value lies
/// there, and what linkage tables need, whose frames grow at one of an entry's instructions.
class Expression {
  public:
    Expression(Cursor block, std::uintptr_t address) : block_(block), address_(address) {}

    bool run(std::uint64_t& base, std::int64_t& offset, bool& is_there) {
        while (!block_.done())
            if (!step(block_.take<std::uint8_t>())) return false;
        if (block_.failed() || count_ != 1 || !stack_[0].has_register) return false;
        base = stack_[0].base;
        offset = stack_[0].offset;
        is_there = stack_[0].is_there;
        return true;
    }

  private:
    static constexpr std::uint64_t pc_number = 16;  // x86-64

    bool step(std::uint8_t what) {
        constexpr std::uint8_t first_literal = 0x30, last_literal = 0x4F, first_register = 0x70, last_register = 0x8F,
                               dereference = 0x06, conjunction = 0x1A, plus = 0x22, plus_constant = 0x23, left = 0x24,
                               not_less = 0x2A;
        if (what >= first_literal && what <= last_literal)
            return push({false, false, 0, static_cast<std::int64_t>(what - first_literal)});
        if (what >= first_register && what <= last_register) return push_register(what - first_register);
        if (what == dereference || what == plus_constant) {
            if (count_ == 0 || stack_[count_ - 1].is_there) return false;
            Value& top = stack_[count_ - 1];
            if (what == plus_constant) top.offset += static_cast<std::int64_t>(block_.uleb());
            if (what == dereference) top.is_there = true;
            return true;
        }
        if (count_ < 2) return false;
        const Value right = stack_[--count_];
        Value& top = stack_[count_ - 1];
        if (top.is_there || right.is_there || right.has_register) return false;
        if (what == plus) {
            top.offset += right.offset;
            return true;
        }
        if (top.has_register) return false;
        if (what == conjunction)
            top.offset &= right.offset;
        else if (what == left && right.offset >= 0 && right.offset < 32)
            top.offset <<= right.offset;
        else if (what == not_less)
            top.offset = top.offset >= right.offset ? 1 : 0;
        else
            return false;
        return true;
    }
    bool push_register(std::uint64_t number) {
        const std::int64_t offset = block_.sleb();
#if !defined(__aarch64__)
        if (number == pc_number) return push({false, false, 0, static_cast<std::int64_t>(address_) + offset});
#endif
        return push({true, false, number, offset});
    }
    bool push(Value value) {
        if (count_ == stack_.size()) return false;
        stack_[count_++] = value;
        return true;
    }

    Cursor block_;
    std::uintptr_t address_;
    std::array<Value, 4> stack_;
    std::size_t count_ = 0;
};

/// Runs the instructions of one function up to an address.
class Machine {
  public:
    Machine(const CommonEntry& common, std::uintptr_t begin, std::uintptr_t wanted)
        : common_(common), at_(begin), wanted_(wanted) {}

    bool run(Cursor code) {
        while (!code.done() && at_ <= wanted_)
            if (!step(code)) return false;
        return !code.failed();
    }
    void begin_function() {
        initial_ = state_;
        has_initial_ = true;
    }
    const State& state() const { return state_; }

  private:
    bool step(Cursor& code) {
        const auto instruction = code.take<std::uint8_t>();
        const std::uint64_t low = instruction & 0x3FU;
        switch (instruction >> 6U) {
            case 1:
                return advance(low);
            case 2:
                return save(low, factored(static_cast<std::int64_t>(code.uleb())));
            case 3:
                return restore(low);
            default:
                return step_extended(instruction, code);
        }
    }
    bool step_extended(std::uint8_t instruction, Cursor& code) {
        switch (instruction) {
            case 0x00:  // nop
            case 0x2D:  // arm64: the return address is signed, or no more
                return true;
            case 0x01:
                at_ = code.encoded(common_.pointers, 0);
                return !code.failed();
            case 0x02:
                return advance(code.take<std::uint8_t>());
            case 0x03:
                return advance(code.take<std::uint16_t>());
            case 0x04:
                return advance(code.take<std::uint32_t>());
            case 0x05: {
                const std::uint64_t number = code.uleb();
                return save(number, factored(static_cast<std::int64_t>(code.uleb())));
            }
            case 0x11: {
                const std::uint64_t number = code.uleb();
                return save(number, factored(code.sleb()));
            }
            case 0x2F: {
                const std::uint64_t number = code.uleb();
                return save(number, -factored(static_cast<std::int64_t>(code.uleb())));
            }
            case 0x06:
                return restore(code.uleb());
            case 0x07:
                return set(code.uleb(), {SavedRegister::How::undefined, {}, 0});
            case 0x08:
                return set(code.uleb(), {SavedRegister::How::same, {}, 0});
            case 0x09:
            case 0x14:
            case 0x15: {  // in a register, or a value that isn't stored
                const std::uint64_t number = code.uleb();
                code.uleb();
                return set(number, {SavedRegister::How::other, {}, 0});
            }
            case 0x0A:
                if (remembered_count_ == remembered_.size()) return false;
                remembered_[remembered_count_++] = state_;
                return true;
            case 0x0B:
                if (remembered_count_ == 0) return false;
                state_ = remembered_[--remembered_count_];
                return true;
            case 0x10:
            case 0x16:
                return save_by_expression(instruction == 0x16, code);
            case 0x2E:
                code.uleb();
                return true;
            default:
                return step_cfa(instruction, code);
        }
    }
    bool step_cfa(std::uint8_t instruction, Cursor& code) {
        switch (instruction) {
            case 0x0C:
                state_.cfa_register = code.uleb();
                state_.cfa_offset = static_cast<std::int64_t>(code.uleb());
                break;
            case 0x12:
                state_.cfa_register = code.uleb();
                state_.cfa_offset = factored(code.sleb());
                break;
            case 0x0D:
                state_.cfa_register = code.uleb();
                break;
            case 0x0E:
                state_.cfa_offset = static_cast<std::int64_t>(code.uleb());
                break;
            case 0x13:
                state_.cfa_offset = factored(code.sleb());
                break;
            case 0x0F: {
                const std::uint64_t bytes = code.uleb();
                Cursor block(code.at(), code.at());
                if (!take_block(code, bytes, block)) return false;
                state_.cfa_known =
                    Expression(block, wanted_).run(state_.cfa_register, state_.cfa_offset, state_.cfa_is_there);
                return true;
            }
            default:
                return false;
        }
        state_.cfa_known = true;
        state_.cfa_is_there = false;
        return true;
    }
    bool save_by_expression(bool is_value, Cursor& code) {
        const std::uint64_t number = code.uleb();
        const std::uint64_t bytes = code.uleb();
        Cursor block(code.at(), code.at());
        if (!take_block(code, bytes, block)) return false;
        SavedRegister saved{SavedRegister::How::other, {}, 0};
        std::uint64_t base = 0;
        bool is_there = false;
        if (!is_value && Expression(block, wanted_).run(base, saved.offset, is_there) && !is_there &&
            (base == sp_number || base == fp_number)) {
            saved.how = SavedRegister::How::at;
            saved.from = base == sp_number ? FrameRule::From::sp : FrameRule::From::fp;
        }
        return set(number, saved);
    }
    static bool take_block(Cursor& code, std::uint64_t bytes, Cursor& block) {
        const std::uintptr_t begin = code.at();
        code.skip(bytes);
        if (code.failed()) return false;
        block = Cursor(begin, code.at());
        return true;
    }
    bool advance(std::uint64_t by) {
        at_ += by * common_.code_factor;
        return true;
    }
    std::int64_t factored(std::int64_t offset) const { return offset * common_.data_factor; }
    bool save(std::uint64_t number, std::int64_t offset) {
        return set(number, {SavedRegister::How::at, FrameRule::From::cfa, offset});
    }
    bool set(std::uint64_t number, SavedRegister saved) {
        if (number == fp_number) state_.fp = saved;
        if (number == bx_number) state_.bx = saved;
        if (number == common_.return_register) state_.ra = saved;
        return true;
    }
    bool restore(std::uint64_t number) {
        if (!has_initial_) return false;
        if (number == fp_number) state_.fp = initial_.fp;
        if (number == bx_number) state_.bx = initial_.bx;
        if (number == common_.return_register) state_.ra = initial_.ra;
        return true;
    }

    const CommonEntry& common_;
    std::uintptr_t at_, wanted_;
    State state_, initial_;
    bool has_initial_ = false;
    std::array<State, 6> remembered_;  // compilers nest two
    std::size_t remembered_count_ = 0;
};

bool fits(std::int64_t offset) { return offset >= INT32_MIN && offset <= INT32_MAX; }

FrameRule rule_of(const State& state, bool is_signal) {
    FrameRule out;
    if (state.ra.how == SavedRegister::How::undefined) {
        out.kind = FrameRule::Kind::outermost;
        return out;
    }
    const bool from_sp = state.cfa_register == sp_number;
    const bool from_bx = state.cfa_register == bx_number;
    if (!state.cfa_known || (!from_sp && !from_bx && state.cfa_register != fp_number)) return out;
    if (state.ra.how != SavedRegister::How::at || state.fp.how == SavedRegister::How::other) return out;
    if (!fits(state.cfa_offset) || !fits(state.ra.offset) || !fits(state.fp.offset)) return out;
    out.kind = FrameRule::Kind::caller;
    out.is_signal = is_signal;
    out.cfa_from = from_sp ? FrameRule::From::sp : from_bx ? FrameRule::From::bx : FrameRule::From::fp;
    out.cfa_is_there = state.cfa_is_there;
    out.cfa = static_cast<std::int32_t>(state.cfa_offset);
    out.ra_from = state.ra.from;
    out.ra = static_cast<std::int32_t>(state.ra.offset);
    if (state.fp.how == SavedRegister::How::at) {
        out.fp_from = state.fp.from;
        out.fp = static_cast<std::int32_t>(state.fp.offset);
    }
    if (state.bx.how == SavedRegister::How::at && fits(state.bx.offset)) {
        out.bx_from = state.bx.from;
        out.bx = static_cast<std::int32_t>(state.bx.offset);
    } else if (state.bx.how != SavedRegister::How::same) {
        out.bx_from = FrameRule::From::unknown;
    }
    return out;
}

}  // namespace

namespace {

FrameRule rule_in(const std::optional<FunctionEntry>& function, std::uintptr_t address) {
    if (!function) return {};
    const CommonEntry& common = function->common;
    Machine machine(common, function->begin, address);
    if (!machine.run(Cursor(common.begin, common.end))) return {};
    machine.begin_function();
    if (!machine.run(function->instructions)) return {};
    return rule_of(machine.state(), common.is_signal);
}

}  // namespace

FrameRule frame_rule_at(std::uintptr_t address) { return rule_in(function_entry_at(address), address); }

FrameRule frame_rule_in(const dl_phdr_info& module, std::uintptr_t address, ReadablePages& known) {
    return rule_in(function_entry_in(module, address, known), address);
}

std::uint64_t unloaded_modules() {
    std::uint64_t count = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* module, std::size_t, void* out) {
            *static_cast<std::uint64_t*>(out) = module->dlpi_subs;
            return 1;
        },
        &count);
    return count;
}

std::string module_path_of(std::uintptr_t address) {
    struct ModuleQuery {
        std::uintptr_t address;
        std::string path;
    } wanted{address, ""};
    dl_iterate_phdr(
        [](dl_phdr_info* module, std::size_t, void* argument) {
            auto& out = *static_cast<ModuleQuery*>(argument);
            std::uintptr_t begin = 0;
            std::uintptr_t end = 0;
            if (!segment_of(*module, out.address, begin, end)) return 0;
            out.path = module->dlpi_name ? module->dlpi_name : "";
            return 1;
        },
        &wanted);
    return wanted.path;
}

}  // namespace palmette::base
