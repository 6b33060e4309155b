// From which size on is it faster to read data in its owner's memory than to copy it into shared memory and out again?
#pragma once

#include <cstdint>

#include "palmette/node/shared_node.hpp"

namespace palmette::runtime {

/// Tried out between the first and the last member, which are the farthest from each other, where every member can read
/// the others' memory and has a core of its own; otherwise a constant. INT64_MAX: at no size that was tried. Collective
/// over the members; the same answer for all. Takes about a millisecond the first time.
///
/// It depends on the machine, by factors: where two cores share a cache, copying twice is twice as fast as a call of
/// the kernel's for each piece; where what one core has written reaches the other slowly, it takes four times as long
/// (docs/decisions/0009).
std::int64_t single_copy_pays_from(SharedNode& node);

}  // namespace palmette::runtime
