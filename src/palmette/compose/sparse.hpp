// Sparse sums: indices with partial results on irregular sets of ranks, summed to their owners and spread back.
//
// Indices of one owner that have the same contributors are a block, as all of them take the same way. Blocks are
// numbered owner by owner; a rank knows those that it contributes to, owns or relays.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "palmette/compose/composition.hpp"
#include "palmette/compose/factor.hpp"

namespace palmette::compose {

/// What ranks tell each other while they plan.
using Words = std::vector<std::int64_t>;

/// Where each rank's part of a message to or from all begins, by MPI's ints. Throws base::Error that names `coarsen`
/// where they don't suffice.
std::vector<int> offsets_of(const Words& counts);

/// What a rank tells each owner: the runs of the indices that it touches, as first index and count. Owner r has
/// bounds[r] to bounds[r + 1] - 1. Throws base::Error on an index outside of all ranges.
std::vector<Words> runs_by_owner(Words touched, const Words& bounds);

/// The indices of one owner that have the same contributors.
struct Signature {
    std::vector<std::int32_t> contributors;  ///< ascending
    std::vector<Interval> indices;           ///< ascending
    std::int64_t count() const;
};

/// The signatures of an owner's range in order of their first index. `touched`: runs of indices in the range, with the
/// rank that contributes to them, in any order. Ranks are told apart for `coarsen` consecutive indices at a time, from
/// multiples of it on. Indices that no rank touches are in none.
std::vector<Signature> signatures(const std::vector<std::pair<std::int32_t, Interval>>& touched, Interval owned,
                                  std::int64_t coarsen);

/// A block as a rank knows it.
struct SparseBlock {
    std::int64_t number = 0;
    Rank owner;
    std::int64_t count = 0;  ///< indices
    RankSet contributors;
    std::vector<Interval> indices;  ///< where the rank contributes to it or owns it
};

/// An owner's blocks by themselves, numbered from 0: their sum, with a byte for each index.
Composition owners_composition(std::int32_t ranks, const std::vector<Signature>& signatures, Rank owner,
                               const Operation& operation);
/// What an owner tells each rank: the blocks that it takes part in. `factory`: of the owner's composition.
std::vector<Words> blocks_by_rank(const std::vector<Signature>& signatures, std::int64_t first_number,
                                  const Composition& composition, const Factory& factory);

/// Appends the form in which an owner tells a block; `indices`: whether the reader needs them.
void write(Words& out, std::int64_t number, const Signature& signature, bool indices);
/// Appends the blocks that an owner told. Throws base::Error where the words are none.
void read(Rank owner, const std::int64_t* words, std::int64_t count, std::vector<SparseBlock>& out);

/// The sum from buffer `partial` to `mine`, or the way back, as a local composition of these blocks, in order of their
/// numbers, out of `blocks` of all ranks. `operation` is that of the sum.
Composition sparse_composition(std::int32_t ranks, std::int64_t blocks, const std::vector<SparseBlock>& known,
                               std::int64_t index_bytes, std::int64_t element_bytes, const Operation& operation,
                               bool back);

}  // namespace palmette::compose
