// Shadow run of the MPI's own reduction on a copy, for its time only.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "palmette/runtime/state/work.hpp"

namespace palmette::runtime {

/// Where the bits of a result depend on who reduces, sampling must not change it. So palmette performs the call, and
/// the MPI repeats it on a copy.
class ShadowReduction {
  public:
    /// The same on all ranks. Not for user-defined operations and types, whose functions would be called more often,
    /// nor for long vectors, whose copies take memory.
    static bool can_do(select::Function function, const Operation& operation, std::int64_t block_bytes, int ranks);

    /// `work` has its plan and outlives this. Copies an input that the call will overwrite.
    explicit ShadowReduction(const Work& work);
    /// Collective over the shadow communicator: whether all ranks have allocated the buffers.
    bool is_allocated_on_all_ranks() const;
    /// Collective, on the shadow communicator. Returns an MPI code.
    int run();

    static constexpr std::int64_t most_bytes = 16 << 20;  ///< of a vector

  private:
    const Work& work_;
    const CallerBuffer& layout_from_;  ///< has the counts and the type
    const void* input_;
    void* result_ = nullptr;
    bool allocated_ = true;
    std::vector<int> counts_;
};

}  // namespace palmette::runtime
