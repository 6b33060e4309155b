// Cost parameters (latency, overhead, bandwidth) with their provenance: calibrated, given or assumed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "palmette/topology/job.hpp"

namespace palmette::model {

/// Who says so. An edge of unknown capacity is taken as `assumed` too.
enum class Provenance : std::uint8_t { calibrated, given, assumed };
const char* name_of(Provenance provenance);

struct CostValue {
    double value = 0;
    Provenance provenance = Provenance::assumed;
};

/// Of messages between ranks that a level is the outermost to tell apart.
struct MessageCosts {
    CostValue latency_s;           ///< one way, tiny, both overheads included
    CostValue overhead_s;          ///< of one rank, at either end
    CostValue stream_bytes_per_s;  ///< of one pair alone; 0: as much as the edges on the way let through

    /// Inside of nodes: what all messages of one node carry at the same time; 0: nothing is known of that.
    double together_bytes_per_s = 0;

    /// What is left of the latency between the two ends.
    double on_the_way_s() const {
        const double left = latency_s.value - 2 * overhead_s.value;
        return left > 0 ? left : 0;
    }
};

/// Round figures that stand in where a topology tells nothing. They rank algorithms; times made of them are of the
/// right order at best.
///
/// Latencies between nodes are about those that Kandalla et al. (IPDPS 2010) measured on an InfiniBand cluster, 2.04 us
/// under one switch, 2.45 us over three hops and 2.85 us over five. The rest are orders of magnitude of present
/// servers, chosen and not measured: an adapter of 100 Gbit/s, one core that copies 5 GB/s through shared memory, half
/// as much where it adds up two operands.
namespace assumed {
inline constexpr double node_latency_s = 2.0e-6;
inline constexpr double further_latency_s = 0.4e-6;  ///< for each level above
inline constexpr double overhead_s = 0.3e-6;
inline constexpr double node_stream_bytes_per_s = 12e9;
inline constexpr double inside_latency_s = 0.5e-6;
inline constexpr double inside_overhead_s = 0.2e-6;
inline constexpr double inside_stream_bytes_per_s = 5e9;
/// Short messages to other nodes are copied out of and into buffers of the MPI, from cache mostly. What adapters read
/// where it is begins between 8 and 64 KB in the MPIs.
inline constexpr double eager_copy_bytes_per_s = 13e9;
inline constexpr std::int64_t eager_copy_bytes = 16384;
inline constexpr double copy_bytes_per_s = 5e9;
inline constexpr double reduce_bytes_per_s = 2.5e9;
/// Longer messages wait for their receiver and pay a round trip for that.
inline constexpr std::int64_t eager_bytes = 65536;
}  // namespace assumed

/// What copying a short message to or from a buffer of the MPI takes one end; 0 for a long one, and at a rate of 0.
inline double eager_copy_s(double bytes, double bytes_per_s) {
    const bool copied = bytes_per_s > 0 && bytes <= static_cast<double>(assumed::eager_copy_bytes);
    return copied ? bytes / bytes_per_s : 0;
}

/// All costs of a job. Depends on the job alone, so all ranks have the same.
struct Costs {
    std::vector<MessageCosts> levels;  ///< as in the job, and behind them ranks that no level tells apart
    CostValue copy_bytes_per_s;
    CostValue reduce_bytes_per_s;
    std::int64_t eager_bytes = assumed::eager_bytes;
    /// Of short messages to other nodes, at each end; 0: they aren't copied.
    double eager_copy_bytes_per_s = assumed::eager_copy_bytes_per_s;
    /// Taken for an edge of the level `node` whose capacity is unknown, so that one rank can't send to a thousand at
    /// once for nothing; 0: such edges let everything through, as those of outer levels do.
    double unknown_node_edge_bytes_per_s = 0;

    static Costs of(const topology::Job& job);

    /// For how long a message to another node keeps an end busy because it goes through a buffer of the MPI.
    double buffered_s(double bytes) const { return eager_copy_s(bytes, eager_copy_bytes_per_s); }

    /// What of an edge is free for this job, each direction; 0: unlimited.
    double edge_bytes_per_s(const topology::Job& job, std::size_t level, std::int32_t group) const;
};

/// One line of what a prediction rests on.
struct CostAssumption {
    std::string what;  ///< "latency of leaf"
    double value = 0;
    std::string unit;  ///< "s" or "bytes/s"
    Provenance provenance = Provenance::assumed;
};

/// Every figure of `costs` that `job` can need, outermost level first, and the capacities of edges (the smallest of
/// each level).
std::vector<CostAssumption> assumptions(const topology::Job& job, const Costs& costs);

}  // namespace palmette::model
