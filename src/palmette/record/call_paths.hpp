// Call paths of MPI calls: who called whom, from the call outwards. Unwound once, recognised afterwards by the return
// addresses in the stack.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "palmette/trace/format.hpp"

namespace palmette::record {

/// The program's path, as recordings name it.
std::string own_path();

/// Call paths in the section, each once, and the modules that their frames lie in. Safe to use from several threads.
class PathTable {
  public:
    void attach(trace::SectionHeader& section);

    /// The number of the path of these return addresses, innermost first; 0: the tables are full.
    std::uint32_t number_of(const std::uintptr_t* addresses, std::size_t count);
    trace::SectionHeader* section() { return section_; }

  private:
    struct Module {
        std::uintptr_t begin = 0, end = 0, base = 0;  ///< base: to subtract from addresses
        std::uint32_t number = 0;
    };
    std::uint32_t module_of(std::uintptr_t address, std::uint64_t& offset);
    void learn_modules();

    trace::SectionHeader* section_ = nullptr;
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  ///< by a hash of all addresses
    std::vector<Module> modules_;
};

/// Paths that one thread has met. A path is recognised when all return addresses stand in the stack where they stood
/// when it was unwound: some loads and compares, no unwinding.
class CallPathCache {
  public:
    /// The number of the path of the call with this return address, from a wrapper with this frame address.
    std::uint32_t find(PathTable& table, const void* return_address, const void* frame) {
        const auto base = reinterpret_cast<std::uintptr_t>(frame);
        const auto address = reinterpret_cast<std::uintptr_t>(return_address);
        const std::size_t set = (address ^ address >> 12) % sets;
        for (const Known& known : known_[set]) {
            if (known.address != address) continue;
#if defined(PALMETTE_ABI_SMPI)
            // Where a simulated rank's stack ends isn't known.
            if (known.base != base) continue;
#endif
            if (base + known.reach > stack_end_) continue;
            bool same = true;
            for (std::uint32_t i = 0; i < known.count && same; ++i)
                same = *reinterpret_cast<const std::uintptr_t*>(base + known.slots[i].offset) == known.slots[i].address;
            if (same) return known.number;
        }
        return unwind(table, set, address, base);
    }

  private:
    static constexpr std::size_t sets = 256, ways = 4;
    static constexpr std::size_t deepest = 64;
    struct Slot {
        std::uintptr_t offset, address;  ///< the address as it stands in the stack
    };
    struct Known {
        std::uintptr_t address = 0;
        std::uint32_t number = 0, count = 0;
        std::uintptr_t reach = 0, base = 0;
        std::unique_ptr<Slot[]> slots;
    };
    std::uint32_t unwind(PathTable& table, std::size_t set, std::uintptr_t address, std::uintptr_t base);

    std::array<std::array<Known, ways>, sets> known_;
    std::array<std::uint8_t, sets> next_{};
    std::uintptr_t stack_end_ = 0;
};

}  // namespace palmette::record
