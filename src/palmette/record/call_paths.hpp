// Call paths of MPI calls: who called whom, from the call outwards. A path is looked up once, frame by frame, and known
// afterwards by the return addresses that a walk up the stack meets (base/stack_walk.hpp).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "palmette/base/stack_walk.hpp"
#include "palmette/record/sampled_stack.hpp"
#include "palmette/trace/format.hpp"

namespace palmette::record {

/// The program's path, as recordings name it.
std::string own_path();

/// How often the program has unloaded modules (dlclose): others may lie at their addresses since.
extern constinit std::atomic<std::uint64_t> unloads;

/// Call paths in the section, each once, and the modules that their frames lie in. Safe to use from several threads.
class PathTable {
  public:
    /// Frames of a path; what is further out is left out.
    static constexpr std::size_t deepest = 64;

    void attach(trace::SectionHeader& section);

    struct Lookup {
        std::uint32_t number = 0;   ///< the path's number; 0: the tables are full
        std::uintptr_t bottom = 0;  ///< the outermost stack pointer
    };
    /// Path of a call from a wrapper with frame address `frame`. `walk`: the calling thread's;
    /// `seen`: `unloads` when `walk` was last known to be right.
    Lookup find(base::StackWalk& walk, std::uint64_t& seen, const void* return_address, const void* frame);
    trace::SectionHeader* section() { return section_; }
    /// The number of a path whose frames are known, from the innermost outwards: a module and an offset each. 0: no
    /// place.
    std::uint32_t number_of_frames(const SampledFrame* frames, std::size_t count);
    /// The number of a path with the regions around it (node `region` and further out) as its outermost frames; where
    /// there is no place, the path itself. 3 ns, more for the first time.
    std::uint32_t in_region(std::uint32_t path, std::uint32_t region) {
        const std::uint64_t key = std::uint64_t{region} << 16U | path;
        const std::uint64_t known = in_regions_[slot_of(key)].load(std::memory_order_relaxed);
        return known >> 16U == key ? static_cast<std::uint32_t>(known & 0xFFFFU) : find_in_region(path, region, key);
    }

  private:
    struct Module {
        std::uintptr_t begin = 0, end = 0, base = 0;  ///< base: to subtract from addresses
        std::uint32_t number = 0;                     ///< in the section; 0: no frame has been in it yet
        trace::ModuleEntry entry{};
    };
    std::uint32_t number_of(const std::uintptr_t* addresses, std::size_t count);
    static std::size_t slot_of(std::uint64_t key) {
        return static_cast<std::size_t>(key * 0x9E3779B97F4A7C15ULL >> 54U);
    }
    std::uint32_t find_in_region(std::uint32_t path, std::uint32_t region, std::uint64_t key);
    std::uint32_t add_path(std::uint64_t hash, const trace::Frame* frames, std::size_t count);
    trace::ModuleEntry python_module(const SampledFrame& frame) const;
    std::uint32_t module_of(std::uintptr_t address, std::uint64_t& offset);
    void learn_modules();
    std::uint32_t number_of_module(const trace::ModuleEntry& entry);

    trace::SectionHeader* section_ = nullptr;
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  ///< by a hash of all frames
    std::vector<Module> modules_;                               ///< modules that are loaded now
    std::map<std::string, std::uint32_t> module_numbers_;       ///< by build id and path
    /// Region << 32 | path << 16 | number, by a hash of the first two: those that were asked for last.
    std::array<std::atomic<std::uint64_t>, 1024> in_regions_{};
    std::uint64_t loads_ = 0, unloads_ = 0;  ///< the loader's counters when `modules_` was true
};

}  // namespace palmette::record
