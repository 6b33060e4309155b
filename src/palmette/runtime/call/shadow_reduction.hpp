// Shadow run of the MPI's own reduction on a copy, for its time only.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "palmette/runtime/state/work.hpp"

namespace palmette::runtime {

/// Where bits depend on who adds up, whose turn a call is must not show in its result. So palmette does the call, and
/// the MPI does the same on a copy.
class ShadowReduction {
  public:
    /// The same on all ranks. Not for operations and types of the program's own, whose functions would be called more
    /// often, nor for long vectors, whose copies take memory.
    static bool can_do(select::Function function, const Operation& operation, std::int64_t block_bytes, int ranks);

    /// `work` has its plan and outlives this. Copies an input that the call will overwrite.
    explicit ShadowReduction(const Work& work);
    /// Collective over the communicator's hidden one: whether all ranks have got the memory.
    bool has_memory_everywhere() const;
    /// Collective, on the hidden communicator. Returns an MPI code.
    int run();

    static constexpr std::int64_t most_bytes = 16 << 20;  ///< of a vector

  private:
    const Work& work_;
    const CallerBuffer& like_;  ///< tells counts and type
    const void* input_;
    void* result_ = nullptr;
    bool has_room_ = true;
    std::vector<int> counts_;
};

}  // namespace palmette::runtime
