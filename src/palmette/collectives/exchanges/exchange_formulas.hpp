// Formulas of exchanges among ranks or leaders of nodes, and of a node's ranks with their leader (Thakur, Rabenseifner,
// Gropp, IJHPCA 19(1), 2005), with contention of the ranks of a group for its link.
//
// Names of patterns are those of the key `between`; `each`: one of so many neighbours takes part. Specifications with a
// bad radix throw base::Error.
#pragma once

#include <optional>
#include <string_view>

#include "palmette/collectives/formula.hpp"

namespace palmette::collectives {

/// Blocks of `bytes` around a ring, in pipeline segments. `closes`: inside of groups where that is faster, or as the
/// key `nested` says.
double ring_s(const FormulaInput& input, double bytes, double each, bool closes);
/// Blocks of `bytes` from all to all in steps of doubling size.
double doubling_s(const Tiers& tiers, double bytes, double each);
double bruck_s(const Tiers& tiers, double radix, double bytes, double each);
/// `pat`, or else a circulant graph, among ranks at stride `stride`.
double skips_s(const Tiers& tiers, std::string_view pattern, double bytes, double stride, double each);
/// Blocks of `bytes` from all to all among the first ranks of groups of `each`. Nothing for a pattern without a
/// formula.
std::optional<double> block_exchange_s(const FormulaInput& input, std::string_view pattern, double bytes, double each);

/// Allreduce of `n` bytes among ranks at stride `stride`. Nothing for a pattern without a formula.
std::optional<double> vector_exchange_s(const FormulaInput& input, std::string_view pattern, double n, double stride,
                                        double each);

/// Time of a leader to collect from, or distribute to, the other ranks of its node. `inside`: as for that key.
double leader_in_node_s(const FormulaInput& input, double bytes, std::string_view inside, bool combine);
/// Intra-node reduce-scatter or, by time reversal, allgather of a vector: before or after it, each rank holds one
/// share. `pieces`: shares consist of whole node pieces.
double split_in_node_s(const FormulaInput& input, std::string_view inside, double n, bool combine, bool pieces = false);
/// Intra-node allreduce or allgather, radix 4.
double summed_in_node_s(const Tiers& tiers, double n);

/// Algorithm::formula of bcast, reduce and allreduce that divide the vector in one piece per node.
std::optional<double> node_pieces_formula(const FormulaInput& input);

}  // namespace palmette::collectives
