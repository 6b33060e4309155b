// Sparse sums on a communicator: discovery of the blocks, and the plans of both directions.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "palmette/runtime/composed/composed.hpp"

namespace palmette::runtime {

/// What a rank contributes to and owns.
struct SparseRequest {
    std::vector<std::int64_t> touched;  ///< indices, in any order
    plan::Interval owned;               ///< of all ranks together: 0 to the number of indices, in order of ranks
    std::int64_t width = 1;             ///< elements of an index
    std::int64_t element_bytes = 1;
    std::string complaint;  ///< what is wrong with this rank's arguments: an error on all ranks
    /// Contributors are told apart for so many consecutive indices at a time; 0: for as many as is fastest by the
    /// model.
    std::int64_t coarsen = 1;
};

/// A planned sum and its adjoint, over buffers `partial` and `mine`.
class SparseSum {
  public:
    /// Collective over `comm`. Memory and time: of this rank's indices and blocks, and some 100 bytes for each rank.
    /// Throws base::Error on all ranks if it fails on one of them.
    static std::unique_ptr<SparseSum> make(MPI_Comm comm, const SparseRequest& request, std::string_view factoring,
                                           MPI_Op operation, MPI_Datatype type, const Settings& settings);

    std::shared_ptr<const ComposedPlan> plan(bool back) const { return back ? back_ : forth_; }
    /// Index of each row of this rank's buffers.
    const std::vector<std::int64_t>& partial_rows() const { return partial_rows_; }
    const std::vector<std::int64_t>& own_rows() const { return own_rows_; }
    /// As given, or as chosen.
    std::int64_t coarsen() const { return coarsen_; }
    /// Number of blocks that any rank has.
    std::int64_t blocks() const { return blocks_; }
    /// Number of blocks that this rank knows of.
    std::int64_t known_blocks() const { return known_blocks_; }

  private:
    std::shared_ptr<const ComposedPlan> forth_, back_;
    std::vector<std::int64_t> partial_rows_, own_rows_;
    std::int64_t coarsen_ = 1, blocks_ = 0, known_blocks_ = 0;
};

}  // namespace palmette::runtime
