// What a signal handler knows of addresses in the code: the rule that leads to the caller, and the module. Learnt once
// for each address, kept in a table that needs no lock to be read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "palmette/base/frame_rules.hpp"
#include "palmette/base/readable.hpp"
#include "palmette/record/zeroed.hpp"
#include "palmette/trace/format.hpp"

namespace palmette::record {

/// What an address in the code leads to: its caller's registers, and the module that it lies in.
struct CodeRule {
    base::FrameRule rule;
    std::uint32_t module = 0;  ///< in the section's table of sampled modules; 0: unknown
    std::uintptr_t base = 0;   ///< what is subtracted from addresses in it
};

class CodeRules {
  public:
    void attach(trace::SectionHeader& section) {
        section_ = &section;
        slots_ = zeroed<Slot>(slots);
        known_ = zeroed<CacheEntry>(most_known);
    }

    /// False: nothing can be learnt in this moment. Async-signal-safe; 5 ns, and microseconds the first time.
    /// `generation`: how often modules were unloaded so far.
    bool find(std::uintptr_t address, std::uint32_t generation, CodeRule& out) {
        if (look_up(address, generation, out)) [[likely]]
            return true;
        return learn(address, generation, out);
    }

    /// Around the unloading of a module, whose tables no other thread may read meanwhile. May be nested.
    void begin_unload();
    void end_unload();

  private:
    static constexpr std::size_t slots = std::size_t{1} << 14U, most_tries = 16;
    static constexpr std::uint64_t being_written = 1;
    struct alignas(64) Slot {
        std::atomic<std::uint64_t> address{0};  ///< 0: free
        std::atomic<std::uint64_t> kind{0}, offsets{0}, more_offsets{0}, base{0};
    };
    static std::size_t first_slot(std::uintptr_t address) {
        return static_cast<std::size_t>(address * 0x9E3779B97F4A7C15ULL >> 40U);
    }
    bool look_up(std::uintptr_t address, std::uint32_t generation, CodeRule& out) const;
    bool learn(std::uintptr_t address, std::uint32_t generation, CodeRule& out);
    void keep(std::uintptr_t address, std::uint32_t generation, const CodeRule& rule);
    bool may_read_tables() const;
    std::uint32_t number_of(const dl_phdr_info& module, std::uint32_t generation);

    trace::SectionHeader* section_ = nullptr;
    Slot* slots_ = nullptr;
    std::atomic<bool> learning_{false};
    std::atomic<std::uint32_t> unloading_{0};
    std::atomic<std::uintptr_t> unloader_{0};  ///< the thread that unloads alone; 0: there is none, or several
    base::ReadablePages readable_;
    std::uint32_t readable_since_ = 0;
    /// Modules that have a number, changed while learning only, as are those pages.
    struct CacheEntry {
        std::uintptr_t base = 0;
        const void* headers = nullptr;
        std::uint32_t generation = 0, number = 0;
    };
    static constexpr std::size_t most_known = 1024;
    CacheEntry* known_ = nullptr;
    std::size_t known_count_ = 0;
};

}  // namespace palmette::record
