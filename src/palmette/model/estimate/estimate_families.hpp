// The formulas, by family of algorithms. Bytes are those of Request::block_bytes, times are seconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "palmette/collectives/spec.hpp"
#include "palmette/model/estimate/estimate_tiers.hpp"
#include "palmette/plan/plan.hpp"

namespace palmette::model {

using collectives::Spec;

/// Input of a formula.
struct FormulaInput {
    const Tiers& tiers;
    double bytes;  ///< of a block, or of the vector
    const Spec& spec;
    bool combines;  ///< a reduction
    bool to_root;   ///< gather or reduce
    bool shares;    ///< ranks of a node may read each other's memory; else `shared` falls back to messages

    /// Number of pipeline segments of a block or vector of `length` bytes.
    double segments(double length) const;
};

/// gather, scatter: linear, k_nomial, by_topology.
std::optional<double> estimate_rooted_blocks(const FormulaInput& input);
/// bcast, reduce: linear, k_nomial, chain, by_topology, scatter_allgather.
std::optional<double> estimate_rooted_vector(const FormulaInput& input);
/// allgather and, by time reversal, reduce_scatter: ring, recursive_doubling or recursive_halving, bruck, linear or
/// direct, leaders.
std::optional<double> estimate_all_blocks(const FormulaInput& input);
/// allreduce: recursive_doubling, recursive_multiplying, all, ring, rabenseifner, direct, leaders, node_aware,
/// node_pieces.
std::optional<double> estimate_allreduce(const FormulaInput& input);
/// Algorithms that divide the vector in one piece per node.
enum class NodePieces : std::uint8_t { bcast, reduce, allreduce };
std::optional<double> estimate_node_pieces(const FormulaInput& input, NodePieces what);
/// alltoall: linear, pairwise, bruck, node_aware.
std::optional<double> estimate_alltoall(const FormulaInput& input);
/// barrier: dissemination, leaders; scan and exscan: linear, recursive_doubling, all.
std::optional<double> estimate_barrier(const FormulaInput& input);
std::optional<double> estimate_scan(const FormulaInput& input);
/// All collectives on one node: shared.
std::optional<double> estimate_shared(const FormulaInput& input, plan::Collective collective);

/// Through shared memory of a node, `bytes` of each vector, with as many readers as the node has other ranks: the
/// owners copy them there, at the same time, and the readers copy them out, or combine them (`combined`: vectors that a
/// reader combines one after the other).
double shared_in_node(const Tiers& tiers, double bytes, double readers, double combined);

/// An exchange of blocks of `bytes` among the first ranks of groups of `each` neighbours; `pattern` as for the key
/// `between`.
std::optional<double> estimate_block_exchange(const FormulaInput& input, std::string_view pattern, double bytes,
                                              double each);

/// Whether a specification has one of these keys.
inline bool any_of(const FormulaInput& input, std::initializer_list<std::string_view> keys) {
    return std::any_of(keys.begin(), keys.end(),
                       [&](std::string_view key) { return input.spec.find(key).has_value(); });
}

}  // namespace palmette::model
