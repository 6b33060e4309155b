// The tree of all stacks that samples have met, in the section. Grown in signal handlers: no lock is taken, and two
// threads that meet a new frame at the same time make one node of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "palmette/record/sampled_stack.hpp"
#include "palmette/trace/format.hpp"

namespace palmette::record {

class Contexts {
  public:
    void attach(trace::SectionHeader& section);

    /// The node of a frame within another node; 0: there is no place for it. Async-signal-safe. 10 ns.
    std::uint32_t child_of(std::uint32_t parent, const SampledFrame& frame);
    trace::ContextNode& node(std::uint32_t number) { return nodes_[number]; }

  private:
    static constexpr std::size_t most_tries = 64;
    std::uint32_t make(std::uint32_t parent, const SampledFrame& frame);
    bool is(std::uint32_t number, std::uint32_t parent, const SampledFrame& frame) const;

    trace::Table* table_ = nullptr;
    trace::ContextNode* nodes_ = nullptr;
    std::size_t slots_ = 0;
    std::atomic<std::uint32_t>* index_ = nullptr;  ///< open addressing; 0: free
};

}  // namespace palmette::record
