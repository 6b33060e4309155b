// Counts of relayed blocks, exchanged before a v-collective.
#pragma once

#include <cstdint>

#include "palmette/execute/binding.hpp"

namespace palmette::runtime {

class Work;

/// Lengths for the few blocks that pass through this rank or are its own, by key (Layout::RelayedCounts).
class RelayedCounts {
  public:
    void set(std::int64_t key, std::int64_t bytes);
    /// Adds many entries, each once, in any order.
    void add(execute::Layout::RelayedCounts entries);
    /// The rank's own block of a gatherv or scatterv.
    void add_own(const Work& work);
    const execute::Layout::RelayedCounts& sorted() const { return entries_; }

  private:
    execute::Layout::RelayedCounts entries_;
};

/// In gatherv, scatterv and alltoallv a rank knows only its own lengths. Where blocks are stored and forwarded, their
/// lengths go the same way first: the plan itself is run on blocks of eight bytes. Collective. Returns an MPI code.
/// `expected`: set to whether this rank's blocks arrive in the lengths that it expects.
int exchange_counts(Work& work, RelayedCounts& some, bool* expected = nullptr);

}  // namespace palmette::runtime
