// What every random case has: its numbers, where it runs, and how far it may go with the MPI underneath.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "call.hpp"
#include "rng.hpp"

namespace test {

struct CaseContext {
    std::uint64_t seed = 1;
    long number = 0;
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0, size = 0;
    /// PMPI_ isn't called: what must come is known without it.
    bool alone = false;
    /// Basic types only: Intel MPI 2021.18 writes outside of buffers when its collectives meet derived types.
    bool plain = false;
    /// Some calls go through the functions with MPI_Count arguments.
    bool large_counts = false;
};

/// Random numbers that all ranks share, and those of a rank.
struct CaseRngs {
    explicit CaseRngs(const CaseContext& c, int world_rank_plus_one)
        : shared(c.seed, static_cast<std::uint64_t>(c.number), 0),
          own(c.seed, static_cast<std::uint64_t>(c.number), static_cast<std::uint64_t>(world_rank_plus_one)) {}
    Rng shared, own;
};

/// Bytes of a block or vector: mostly small, to get through many; some beyond the sizes at which MPIs change their
/// protocol and plans cut segments.
inline int byte_limit(Rng& shared) {
    if (shared.one_in(80)) return 1000000;
    if (shared.one_in(25)) return 100000;
    return shared.one_in(4) ? 9000 : 300;
}

/// Through the symbols that a preload may replace.
inline int through_mpi(const Call& call, bool large, int size) {
#ifdef TEST_HAS_LARGE_COUNTS
    if (large) return call_large(call, size);
#endif
    (void)large;
    (void)size;
    return call_mpi(call);
}

}  // namespace test
