// Closed-form cost of a multicast among n participants, and the optimal pipeline depth.
//
// Hidayetoglu et al., "HiCCL", 2024, section on the cost of rings and trees. d: bytes; a: latency per message in
// seconds; f: bandwidth in bytes per second.
#pragma once

#include <cstdint>

namespace palmette::compose {

struct LinkCost {
    double latency_s = 0;
    double bytes_per_s = 1;
};

/// A chain of n in k parts: (a + d/(f k)) (k + n - 2).
double ring_s(std::int32_t participants, double bytes, std::int32_t depth, LinkCost link);
/// A tree of radix r: (a + d/f) (r - 1) ceil(log_r n).
double tree_s(std::int32_t participants, double bytes, std::int32_t radix, LinkCost link);
/// Flat, from the root to each in turn: (a + d/f) (n - 1).
double direct_s(std::int32_t participants, double bytes, LinkCost link);
/// Scatter and allgather of n parts: 2 (a + d/(f n)) (n - 1).
double scatter_allgather_s(std::int32_t participants, double bytes, LinkCost link);

/// The integer depth, 1 to `most`, that minimises ring_s: next to sqrt(d (n - 2) / (f a)).
std::int32_t best_depth(std::int32_t participants, double bytes, LinkCost link, std::int32_t most = 1024);

}  // namespace palmette::compose
