// Cut bound: the bytes that must cross the edge between one group of ranks and the rest, whatever the plan.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/plan/plan.hpp"

namespace palmette::model {

/// Bytes per direction.
struct Traffic {
    std::int64_t out = 0;
    std::int64_t in = 0;
};

/// For any group of a job. With s of p ranks in the group, blocks of m bytes and vectors of n:
///
///     collective       out of the group                  into the group
///     gather           s m if the root is outside        (p-s) m if it is inside
///     scatter          (p-s) m if the root is inside     s m if it is outside
///     bcast            n if the root is inside           n if it is outside
///     reduce           n if the root is outside          n if it is inside
///     allgather        s m                               (p-s) m
///     reduce_scatter   (p-s) m                           s m
///     allreduce        n                                 n
///     alltoall         s (p-s) m                         s (p-s) m
///     scan, exscan     n for each run of ranks inside    n for each run of ranks outside
///                      with a rank outside behind it     with a rank inside behind it
///     barrier          0                                 0
///
/// A run is a maximal sequence of consecutive ranks on the same side. The prefixes and contributions of the ranks
/// inside determine the sum of each such run outside (for an operation with inverses, such as the sum of integers), so
/// at least that many bytes must enter.
class Crossing {
  public:
    /// `block_bytes` as in bound(). `job` must outlive this. Throws base::Error on a list of another length and on a
    /// root outside of the job.
    Crossing(const plan::Job& job, const plan::Request& request, std::vector<std::int64_t> block_bytes);

    /// Traffic of the group of positions first to end - 1; zero for all ranks or none.
    Traffic of(std::int32_t first, std::int32_t end) const;

    /// Traffic of every group of a partition of all positions, in time O(groups + ranks).
    std::vector<Traffic> of_groups(const topology::Partition& groups) const;

    /// Bytes of all blocks of gather, scatter, allgather and reduce_scatter; of the vector of the others.
    std::int64_t total() const { return total_; }

    /// No block is empty.
    bool all_move() const;
    /// All blocks have one length.
    bool even() const { return given_.size() == 1; }
    /// A rank's block of gather, scatter, allgather or reduce_scatter, or what a rank of alltoall sends to itself.
    std::int64_t block_of(plan::Rank rank) const;

  private:
    std::int64_t sum(std::int32_t first, std::int32_t end) const;
    Traffic pairs(std::int32_t first, std::int32_t end) const;
    Traffic prefixes(std::int32_t first, std::int32_t end) const;

    const plan::Job& job_;
    plan::Collective collective_;
    std::int32_t root_ = 0;  ///< position
    std::vector<std::int64_t> given_;
    std::int64_t total_ = 0;
    std::vector<std::int64_t> until_;  ///< prefix sums of blocks by position, where they differ
};

}  // namespace palmette::model
