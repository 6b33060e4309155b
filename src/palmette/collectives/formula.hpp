// What formulas of algorithms' times are computed from. Bytes are those of Request::block_bytes, times are seconds.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "palmette/collectives/registry.hpp"
#include "palmette/topology/tiers.hpp"

namespace palmette::collectives {

using topology::Partners;
using topology::Tier;
using topology::Tiers;
namespace assumed = topology::assumed;

/// Input of a formula (Algorithm::formula). References what it is made from.
struct FormulaInput {
    FormulaInput(const Tiers& tiers_, const Request& request_, const Spec& spec_);

    const Tiers& tiers;  ///< in the order in which the specification takes ranks, of 2 or more
    const Request& request;
    const Spec& spec;
    double bytes;   ///< size of a block, or of the vector; 0: unknown
    bool combines;  ///< a reduction
    bool to_root;   ///< gather or reduce
    bool shares;    ///< ranks of a node may read each other's memory; else `shared` falls back to messages

    /// Number of pipeline segments of a block or vector of `length` bytes. Throws base::Error for a bad size.
    double segments(double length) const;
    /// Whether the specification has one of these keys.
    bool has_any(std::initializer_list<std::string_view> keys) const {
        return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) { return spec.find(key).has_value(); });
    }
};

/// Through shared memory of a node, `bytes` of each vector, with as many readers as the node has other ranks: the
/// owners copy them there, at the same time, and the readers copy them out, or combine them (`combined`: vectors that a
/// reader combines one after the other).
double shared_in_node_s(const Tiers& tiers, double bytes, double readers, double combined);

}  // namespace palmette::collectives
