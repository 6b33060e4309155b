// The tree of all stacks that samples have met, in the section. Grown in signal handlers: no lock is taken, and two
// threads that meet a new frame at the same time make one node of it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "palmette/record/sampled_stack.hpp"
#include "palmette/trace/format.hpp"

namespace palmette::record {

/// A thread's last path through the tree: the next one mostly begins alike.
struct LastPath {
    std::array<SampledFrame, SampledFrames::most> frames{};
    std::array<std::uint32_t, SampledFrames::most> nodes{};
    std::size_t count = 0;
};

class Contexts {
  public:
    void attach(trace::SectionHeader& section);

    struct Found {
        std::uint32_t node = 0;
        bool is_short = false;  ///< inner frames found no place
    };
    /// The node of the innermost frame. Async-signal-safe. Cost: O(frames), 2 ns for each that is as in the last path,
    /// 10 ns for others.
    Found find(const SampledFrames& frames, LastPath& last);
    trace::ContextNode& node(std::uint32_t number) { return nodes_[number]; }

  private:
    static constexpr std::size_t most_tries = 64;
    std::uint32_t child_of(std::uint32_t parent, const SampledFrame& frame);
    std::uint32_t make(std::uint32_t parent, const SampledFrame& frame);
    bool is(std::uint32_t number, std::uint32_t parent, const SampledFrame& frame) const;

    trace::Table* table_ = nullptr;
    trace::ContextNode* nodes_ = nullptr;
    std::size_t slots_ = 0;
    std::atomic<std::uint32_t>* index_ = nullptr;  ///< open addressing; 0: free
};

}  // namespace palmette::record
