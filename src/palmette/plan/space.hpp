// Which blocks a collective has, who holds them before and after, and how long they are.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/plan/plan.hpp"

namespace palmette::plan {

/// How blocks are numbered, with p ranks, in the program's BlockOrder.
///  - per_rank: block i belongs to rank i (gather, scatter, allgather, reduce_scatter);
///  - pairs: block s * p + d goes from s to d (alltoall);
///  - cut: one vector in Program::cut even blocks (bcast, reduce, allreduce, scan, exscan);
///  - listed: Program::cut blocks, each with a length of its own (composed);
///  - none: synchronisation only (barrier).
enum class BlockSpace : std::uint8_t { per_rank, pairs, cut, listed, none };
BlockSpace space_of(Collective collective);

/// True where the root matters: gather, scatter, bcast, reduce.
bool is_rooted(Collective collective);
/// True where contributions are combined: reduce, allreduce, reduce_scatter, scan, exscan.
bool is_reduction(Collective collective);

/// Precondition and postcondition: the blocks that a rank has before the collective, and those that it must hold after.
/// A service position has none. For bcast the root's vector is in `send` and the others' in `recv`; the first rank of
/// an exscan gets nothing.
Blocks blocks_before(const Request& request, const Job& job, const Program& program);
Blocks blocks_after(const Request& request, const Job& job, const Program& program);

/// Number of blocks of all ranks together.
std::int64_t block_count(const Request& request, const Job& job, std::int64_t cut);

/// The length of every block from user input: one number (bytes as in Request::block_bytes), or one for each block.
class BlockLengths {
  public:
    /// Throws base::Error on a list of another length. `block_bytes` must outlive this.
    BlockLengths(const Request& request, const Job& job, std::int64_t cut,
                 const std::vector<std::int64_t>& block_bytes);
    std::int64_t operator[](std::int64_t block) const;
    std::int64_t of(Span<Region> regions, Slice slice) const;
    /// All blocks together.
    std::int64_t total() const;

  private:
    const std::vector<std::int64_t>& given_;
    std::int64_t blocks_, cut_, element_;
};

}  // namespace palmette::plan
