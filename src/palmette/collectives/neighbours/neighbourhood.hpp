// The edges of a neighbourhood, as far as one rank knows them.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/base/ids.hpp"
#include "palmette/plan/program.hpp"

namespace palmette::collectives {

using base::Rank;

/// One rank's neighbours in the order of its blocks: block i of a call goes to targets[i], block j comes from
/// sources[j]. A rank may be listed several times, and may list itself. Negative: no neighbour (MPI_PROC_NULL), and no
/// block moves.
struct Neighbours {
    std::vector<std::int32_t> sources, targets;
    /// For several edges from one source, the edge by which block j comes: 0 is the first in the source's list. Empty:
    /// their order is equal on both sides.
    std::vector<std::int32_t> edge_of_source;
};

/// All edges from one rank to another.
struct ParallelEdges {
    std::int32_t source = 0, target = 0;
    std::int32_t count = 0;
    friend bool operator==(const ParallelEdges&, const ParallelEdges&) = default;
};

/// All edges that begin or end in a group of ranks: what each member knows after the group has exchanged its lists.
class Neighbourhood {
  public:
    /// One rank's part of what a group exchanges.
    static std::vector<std::int32_t> words(Rank rank, const Neighbours& own);
    /// `words` of all members, one after the other. Throws base::Error where they end too early.
    explicit Neighbourhood(const std::vector<std::int32_t>& words_of_all);

    /// By source, then target.
    const std::vector<ParallelEdges>& edges() const { return edges_; }

  private:
    std::vector<ParallelEdges> edges_;
};

/// The most edges from one rank to another of which `own` tells.
std::int32_t most_parallel(const Neighbours& own);

/// A number whose sum over all ranks, modulo 2^64, is 0 where sources and targets are the same edges, and hardly ever
/// otherwise.
std::uint64_t unmatched(Rank rank, const Neighbours& own);

/// The numbers of a neighbourhood collective's blocks. alltoall: one for each edge; allgather: one for each rank, and
/// where a rank gets one several times, the k-th copy lies in its caller's buffer 1 + k (recv, then named ones).
struct NeighbourBlocks {
    bool alltoall = true;
    std::int32_t ranks = 0;
    std::int32_t parallel = 1;  ///< at least most_parallel of every rank, and the same on all

    std::int64_t count() const { return alltoall ? std::int64_t{ranks} * ranks * parallel : ranks; }
    std::int64_t of(std::int32_t source, std::int32_t target, std::int32_t index) const {
        return alltoall ? (std::int64_t{source} * ranks + target) * parallel + index : source;
    }
    std::int32_t source_of(std::int64_t block) const {
        return static_cast<std::int32_t>(alltoall ? block / parallel / ranks : block);
    }
    /// alltoall only.
    std::int32_t target_of(std::int64_t block) const { return static_cast<std::int32_t>(block / parallel % ranks); }

    struct Place {
        plan::Buffer buffer;
        std::int64_t block;
        friend auto operator<=>(const Place&, const Place&) = default;
    };
    /// What lies where in a rank's buffers: by target, and by source; block -1: nothing. An allgather sends one block.
    std::vector<Place> sent(Rank rank, const Neighbours& own) const;
    std::vector<Place> received(Rank rank, const Neighbours& own) const;
    /// Number of the caller's buffers on the rank that gets most copies of a block.
    std::size_t buffers() const { return alltoall ? 2 : 1 + static_cast<std::size_t>(parallel); }
};

}  // namespace palmette::collectives
