// Sparse sums: indices with partial results on irregular sets of ranks, summed to their owners and spread back.
//
// Indices of one owner that have the same contributors are a block, as all of them take the same way. Blocks are
// numbered owner by owner; a rank knows those that it contributes to, owns or relays.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "palmette/compose/composition.hpp"

namespace palmette::compose {

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

/// Appends the form in which an owner tells a block; `indices`: whether the reader needs them.
void write(std::vector<std::int64_t>& out, std::int64_t number, const Signature& signature, bool indices);
/// Appends the blocks that an owner told. Throws base::Error where the words are none.
void read(Rank owner, const std::int64_t* words, std::int64_t count, std::vector<SparseBlock>& out);

/// The sum from buffer `partial` to `mine`, or the way back, as a local composition of these blocks, in order of their
/// numbers, out of `blocks` of all ranks. `operation` is that of the sum.
Composition sparse_composition(std::int32_t ranks, std::int64_t blocks, const std::vector<SparseBlock>& known,
                               std::int64_t index_bytes, std::int64_t element_bytes, const Operation& operation,
                               bool back);

}  // namespace palmette::compose
