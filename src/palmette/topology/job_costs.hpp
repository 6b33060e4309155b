// Cost parameters (latency, overhead, bandwidth) with their provenance: calibrated, given or assumed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "palmette/topology/job.hpp"

namespace palmette::topology {

/// Provenance of a cost value. An edge of unknown capacity counts as `assumed`, too.
enum class Provenance : std::uint8_t { calibrated, given, assumed };
const char* name_of(Provenance provenance);

struct CostValue {
    double value = 0;
    Provenance provenance = Provenance::assumed;
};

/// LogP-style costs of messages between ranks whose outermost distinguishing level this is.
struct MessageCosts {
    CostValue latency_s;           ///< one way, tiny, both overheads included
    CostValue overhead_s;          ///< CPU time of one rank per message, at either end: the mean of both
    CostValue stream_bytes_per_s;  ///< bandwidth of one pair alone; 0: limited only by the edges on the path

    /// Intra-node: aggregate bandwidth of all concurrent messages of one node; 0: unknown.
    double together_bytes_per_s = 0;

    double receive_overhead_s = 0;  ///< CPU time of the receiver alone; 0: as overhead_s
    double overhead_of_receiver_s() const { return receive_overhead_s > 0 ? receive_overhead_s : overhead_s.value; }
    double overhead_of_sender_s() const { return 2 * overhead_s.value - overhead_of_receiver_s(); }

    /// Wire latency: the latency without the overheads of both ends (L of LogP).
    double wire_s() const {
        const double left = latency_s.value - 2 * overhead_s.value;
        return left > 0 ? left : 0;
    }
};

/// Default values, used where a topology gives no costs. They are good enough to rank algorithms; absolute times
/// predicted from them have the right order of magnitude at best.
///
/// Inter-node latencies are about those that Kandalla et al. (IPDPS 2010) measured on an InfiniBand cluster: 2.04 us
/// under one switch, 2.45 us over three hops and 2.85 us over five. The rest are orders of magnitude of current
/// servers, chosen and not measured: a 100 Gbit/s NIC, one core that copies 5 GB/s through shared memory and reduces
/// half as much. Links of at most 10 Gbit/s are taken for Ethernet with TCP, whose messages pass the kernel at both
/// ends: some 15 us, and 40 us on links of at most 1 Gbit/s.
namespace assumed {
inline constexpr double node_latency_s = 2.0e-6;
inline constexpr double further_latency_s = 0.4e-6;  ///< for each level above
inline constexpr double overhead_s = 0.3e-6;
inline constexpr double tcp_up_to_bytes_per_s = 1.25e9;
inline constexpr double tcp_latency_s = 15e-6;
inline constexpr double tcp_overhead_s = 3e-6;
inline constexpr double slow_tcp_up_to_bytes_per_s = 0.125e9;
inline constexpr double slow_tcp_latency_s = 40e-6;
inline constexpr double node_stream_bytes_per_s = 12e9;
inline constexpr double inside_latency_s = 0.5e-6;
inline constexpr double inside_overhead_s = 0.2e-6;
/// Reading a flag or a short vector that another core of the node has just written: a cache-to-cache transfer.
inline constexpr double cache_miss_s = 0.1e-6;
inline constexpr double inside_stream_bytes_per_s = 5e9;
/// Short inter-node messages are copied through eager buffers of the MPI, mostly within the cache. Zero-copy transfer
/// by the NIC starts between 8 and 64 KB, depending on the MPI.
inline constexpr double eager_copy_bytes_per_s = 13e9;
inline constexpr std::int64_t eager_copy_bytes = 16384;
inline constexpr double copy_bytes_per_s = 5e9;
inline constexpr double reduce_bytes_per_s = 2.5e9;
/// Longer messages use the rendezvous protocol: they wait for their receiver and cost another round trip.
inline constexpr std::int64_t eager_bytes = 65536;
}  // namespace assumed

/// Time that one end spends copying a short message to or from an eager buffer of the MPI; 0 for a long one, and at a
/// rate of 0.
inline double eager_copy_s(double bytes, double bytes_per_s) {
    const bool copied = bytes_per_s > 0 && bytes <= static_cast<double>(assumed::eager_copy_bytes);
    return copied ? bytes / bytes_per_s : 0;
}

/// All costs of a job. Depends on the job alone, so it is identical on all ranks.
struct Costs {
    std::vector<MessageCosts> levels;  ///< as in the job, then one entry for ranks that no level tells apart
    CostValue copy_bytes_per_s;
    CostValue reduce_bytes_per_s;
    std::int64_t eager_bytes = assumed::eager_bytes;
    /// Copy rate of short inter-node messages, at each end; 0: they aren't copied.
    double eager_copy_bytes_per_s = assumed::eager_copy_bytes_per_s;
    /// Assumed capacity of an edge of the level `node` whose capacity is unknown, so that a fan-out to a thousand ranks
    /// isn't free of contention; 0: such edges are unlimited, as those of outer levels are.
    double unknown_node_edge_bytes_per_s = 0;

    static Costs of(const Job& job);

    /// Time that the sender or receiver of an inter-node message spends on the copy through an eager buffer. What the
    /// network interface has written misses the receiver's caches, so its copy is taken to last twice as long; formulas
    /// use the mean of both.
    double buffered_by_sender_s(double bytes) const { return eager_copy_s(bytes, 1.5 * eager_copy_bytes_per_s); }
    double buffered_by_receiver_s(double bytes) const { return eager_copy_s(bytes, 0.75 * eager_copy_bytes_per_s); }

    /// Capacity of an edge that is available to this job, in each direction; 0: unlimited.
    double edge_bytes_per_s(const Job& job, std::size_t level, std::int32_t group) const;
};

/// One input of a prediction, with its provenance.
struct CostAssumption {
    std::string what;  ///< "latency of leaf"
    double value = 0;
    std::string unit;  ///< "s" or "bytes/s"
    Provenance provenance = Provenance::assumed;
};

/// All values of `costs` that apply to `job`, outermost level first, and the edge capacities (the smallest of each
/// level).
std::vector<CostAssumption> assumptions(const Job& job, const Costs& costs);

}  // namespace palmette::topology
