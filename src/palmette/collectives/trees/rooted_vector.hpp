// Common part of bcast and reduce: a tree over all ranks, and the slices in which one vector is pipelined along it.
#pragma once

#include "palmette/collectives/trees/rooted.hpp"

namespace palmette::collectives {

/// A topology-aware tree as specified, the same on all ranks.
struct TopologyForm {
    std::vector<LevelShape> levels;  ///< outermost first
    TreeShape top;
    std::uint16_t parts = 1;
};

/// Keys LEVEL=SHAPE (a level inside of the node may be `shared`, which means linear where Request::shared_memory is
/// false), inside=SHAPE for the level of nodes and those inside of them that have none of their own, top=SHAPE,
/// segment=SIZE. Where no level is named:
///  - below 32 KB every level has leaders, in stars of up to 8 members and binomial trees of more: a short
///    critical path;
///  - from 32 KB on a chain runs over up to 16 nodes, so that every link carries the vector once; with more nodes every
///    level is a chain of up to 8 members or a tree of two children each. The vector flows in 16 slices of 4 to 64 KB,
///    or more slices of larger vectors.
/// Levels inside of the node are shared where they can be.
TopologyForm topology_form(const Job& job, const Request& request, const Spec& spec);
/// Throws base::Error on a value that is no tree. The keys must have been checked.
void check_topology_form(const Job& job, const Request& request, const Spec& spec);

/// Members of a group of a level on average, rounded up: groups of the next level, or ranks.
std::int32_t members_of(const Job& job, std::size_t level);
/// A star of up to 8 members, a binomial tree of more.
TreeShape small_shape(std::int32_t members);

/// True when positions equal ranks, so that keeping the order of positions keeps that of ranks. O(p) where it is true:
/// call it only for noncommutative operations.
bool in_rank_order(const Job& job);

/// linear, k_nomial:radix, k_ary:radix and chain, by the name in the spec, with keys order and segment. Rank order is
/// the default where a request is ordered.
RootedTree flat_vector_tree(const Job& job, Rank rank, const Request& request, const Spec& spec);
RootedTree topology_vector_tree(const Job& job, Rank rank, const Request& request, const Spec& spec);
/// Keys order and segment.
RootedTree bine_vector_tree(const Job& job, Rank rank, const Request& request, const Spec& spec);
/// Keys helpers, first and segment.
RootedTree earliest_vector_tree(const Job& job, Rank rank, const Request& request, const Spec& spec);

/// The formulas of the rows (Algorithm::formula).
std::optional<double> flat_vector_formula(const FormulaInput& input);
std::optional<double> topology_vector_formula(const FormulaInput& input);

/// The checks of the rows, and how many tags they need.
std::optional<std::string> refuse_flat_vector(const Job& job, const Request& request, const Spec& spec);
std::optional<std::string> refuse_topology_vector(const Job& job, const Request& request, const Spec& spec);
std::optional<std::string> refuse_bine_vector(const Job& job, const Request& request, const Spec& spec);
std::optional<std::string> refuse_earliest_vector(const Job& job, const Request& request, const Spec& spec);
/// Slices for lanes used round-robin: rounded up to whole rounds, as far as there are tags.
std::uint16_t whole_rounds(std::int64_t slices, std::int64_t trees);
std::int64_t one_tag_a_slice(const Job& job, const Request& request, const Spec& spec);

/// Broadcasts the root's vector. A slice is forwarded as soon as it has arrived and key window=W allows it.
Program bcast_along(const Job& job, Rank rank, const Spec& spec, const RootedTree& tree);

/// Reduces all vectors to the root. A rank combines its own with its children's in a fixed order, the nearest first, so
/// the result doesn't depend on arrival order; with tree.keeps_order operands are combined in the order of positions.
Program reduce_along(const Job& job, Rank rank, const Request& request, const RootedTree& tree);

}  // namespace palmette::collectives
