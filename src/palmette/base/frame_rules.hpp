// How to get from a function's stack frame to its caller's, by the unwind tables (.eh_frame) of the module that holds
// the function. What exceptions are unwound by, but nothing is read that can't be, and a rule can be kept for its
// address.
#pragma once

#include <cstdint>
#include <string>

struct dl_phdr_info;

namespace palmette::base {

class ReadablePages;

/// Where the caller's registers are at one place in the code, relative to the own stack and frame pointers. The
/// canonical frame address (CFA) is the caller's stack pointer.
struct FrameRule {
    /// `bx`: x86-64's rbx, by which code goes that aligns its stack itself, as the loader's resolver of lazily bound
    /// functions. `unknown`: nobody tells.
    enum class From : std::uint8_t { kept, cfa, sp, fp, bx, unknown };
    /// `unknown`: no table tells; `outermost`: there is no caller.
    enum class Kind : std::uint8_t { unknown, outermost, caller };

    Kind kind = Kind::unknown;
    From cfa_from = From::sp;   ///< sp, fp or bx, to which `cfa` is added
    bool cfa_is_there = false;  ///< the result is the address of the CFA, not the CFA itself
    From fp_from = From::kept;  ///< the caller's frame pointer lies at this, plus `fp`; kept: it is the same
    From ra_from = From::cfa;   ///< where the return address is
    From bx_from = From::kept;  ///< where the caller's rbx is
    bool is_signal = false;     ///< a signal came here: the caller's address is none that is returned to
    std::int32_t cfa = 0, fp = 0, ra = 0, bx = 0;
};

/// The rule at `address`; for a return address pass it less 1, since it may be the next function's. Cost: microseconds,
/// O(log functions of the module).
FrameRule frame_rule_at(std::uintptr_t address);
/// As frame_rule_at, for a module that is known to hold the address and pages that `known` has found readable.
/// Async-signal-safe.
FrameRule frame_rule_in(const dl_phdr_info& module, std::uintptr_t address, ReadablePages& known);

/// How often a module was unloaded from this process: addresses from before may mean others since. 50 ns.
std::uint64_t unloaded_modules();

/// The path of the module that holds the address as its loader has it; empty for the program itself and for none.
std::string module_path_of(std::uintptr_t address);

}  // namespace palmette::base
