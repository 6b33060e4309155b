// Measures from which size on a single copy (a read in the owner's memory) beats a double copy through shared memory.
#pragma once

#include <cstdint>

#include "palmette/node/shared_node.hpp"

namespace palmette::node {

/// Measured between the first and the last member, which are the farthest from each other, where every member can read
/// the others' memory and has a core of its own; otherwise a constant. INT64_MAX: at no measured size. Collective over
/// the members; the same answer for all. Takes about a millisecond the first time.
///
/// The threshold depends on the machine, by factors: where two cores share a cache, a double copy is twice as fast as
/// one system call per piece; where cache-to-cache transfer between the cores is slow, it takes four times as long
/// (docs/decisions/0009).
std::int64_t single_copy_pays_from(SharedNode& node);

}  // namespace palmette::node
