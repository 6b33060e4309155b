// Block lengths that a rank had to be told.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "palmette/runtime/communicator.hpp"

namespace palmette::runtime {

/// Lengths by rank, for the few ranks whose blocks pass through this one.
class SomeLengths {
  public:
    void set(std::int32_t rank, std::int64_t bytes);
    const std::vector<std::pair<std::int32_t, std::int64_t>>& sorted() const { return entries_; }

  private:
    std::vector<std::pair<std::int32_t, std::int64_t>> entries_;
};

/// In gatherv and scatterv a rank knows only its own length. Where blocks are stored and forwarded, their lengths go the
/// same way first: the plan itself is run on blocks of eight bytes. `own`: this rank's length; `all`: all lengths by rank, at the root of a scatterv
/// only. Collective. Returns an MPI code.
int learn_lengths(Communicator& state, const CachedPlan& plan, std::int64_t own, const std::int64_t* all,
                  SomeLengths& some);

}  // namespace palmette::runtime
