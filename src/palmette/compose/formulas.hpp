// What a multicast among n participants takes in closed form, and the pipeline's best depth.
//
// Hidayetoglu et al., "HiCCL", 2024, section on the cost of rings and trees. d: bytes; a: seconds that a message takes
// to start; f: bytes per second.
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
/// To everybody in turn: (a + d/f) (n - 1).
double direct_s(std::int32_t participants, double bytes, LinkCost link);
/// In n parts, scattered and gathered by all: 2 (a + d/(f n)) (n - 1).
double scatter_allgather_s(std::int32_t participants, double bytes, LinkCost link);

/// The whole number of parts, 1 to `most`, for which ring_s is least: next to sqrt(d (n - 2) / (f a)).
std::int32_t best_depth(std::int32_t participants, double bytes, LinkCost link, std::int32_t most = 1024);

}  // namespace palmette::compose
