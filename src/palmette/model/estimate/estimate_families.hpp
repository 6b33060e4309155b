// The formulas, by family of algorithms. Bytes are those of Request::block_bytes, times are seconds.
#pragma once

#include <cstdint>
#include <optional>

#include "palmette/collectives/spec.hpp"
#include "palmette/model/estimate/estimate_tiers.hpp"
#include "palmette/plan/plan.hpp"

namespace palmette::model {

using collectives::Spec;

/// What a formula is about.
struct Asked {
    const Tiers& tiers;
    double bytes;  ///< of a block, or of the vector
    const Spec& spec;
    bool combines;  ///< a reduction
    bool to_root;   ///< gather or reduce
    bool shares;    ///< ranks of a node may read each other's memory; where not, `shared` sends messages

    /// Parts that a block or vector of `length` bytes is cut in for pipelining.
    double segments(double length) const;
};

/// gather, scatter: linear, k_nomial, by_topology.
std::optional<double> estimate_rooted_blocks(const Asked& asked);
/// bcast, reduce: linear, k_nomial, chain, by_topology, scatter_allgather.
std::optional<double> estimate_rooted_vector(const Asked& asked);
/// allgather and, turned back in time, reduce_scatter: ring, recursive_doubling or recursive_halving, bruck, linear or
/// direct, leaders.
std::optional<double> estimate_all_blocks(const Asked& asked);
/// allreduce: recursive_doubling, recursive_multiplying, all, ring, rabenseifner, direct, leaders, node_aware,
/// node_pieces.
std::optional<double> estimate_allreduce(const Asked& asked);
/// A piece of the vector for each node.
enum class NodePieces : std::uint8_t { bcast, reduce, allreduce };
std::optional<double> estimate_node_pieces(const Asked& asked, NodePieces what);
/// alltoall: linear, pairwise, bruck, node_aware.
std::optional<double> estimate_alltoall(const Asked& asked);
/// barrier: dissemination, leaders; scan and exscan: linear, recursive_doubling, all.
std::optional<double> estimate_barrier(const Asked& asked);
std::optional<double> estimate_scan(const Asked& asked);
/// All collectives on one node: shared.
std::optional<double> estimate_shared(const Asked& asked, plan::Collective collective);

/// An exchange of blocks of `bytes` among the first ranks of groups of `each` neighbours, by the name that `between`
/// has.
std::optional<double> estimate_block_exchange(const Asked& asked, std::string_view pattern, double bytes, double each);

}  // namespace palmette::model
