// What one rank's blocks of a sparse sum cost, to choose how coarse blocks are.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "palmette/compose/sparse.hpp"
#include "palmette/topology/job_costs.hpp"

namespace palmette::model {

/// Packing, unpacking or combining a region, adjacent blocks of a message, beyond its bytes: 4 to 10 ns on a virtual
/// machine with two cores of a Xeon (studies/block_cost.py).
inline constexpr double region_s = 10e-9;

/// What an owner knows of a sparse sum before blocks are made.
struct OwnersPart {
    base::Rank owner;
    plan::Interval owned;
    std::vector<std::pair<std::int32_t, plan::Interval>> touched;  ///< as compose::signatures takes it
};

/// Values of `coarsen` to choose among: powers of two up to the longest range, and to 4,096. `bounds`: of the ranges.
std::vector<std::int64_t> coarsen_candidates(const compose::Words& bounds);

/// For each candidate the picoseconds that the sum of this owner's blocks takes, were its work spread evenly over the
/// links of the level where it takes longest, and over all ranks: those of all owners add up, so that a rank needs its
/// own blocks only, and as whole numbers in any order. Good for an order of candidates: latencies and the imbalance of
/// ranks and links, which they share, are left out, and so is the time to plan.
///
/// `factored`: the job over which `factoring` is; `job` has the costs. Time: that of all messages of all candidates.
std::vector<std::int64_t> coarsen_picoseconds(const OwnersPart& part, const std::vector<std::int64_t>& candidates,
                                              std::int64_t index_bytes, const compose::Operation& operation,
                                              const topology::Job& factored, const compose::Factoring& factoring,
                                              const topology::Job& job);

}  // namespace palmette::model
