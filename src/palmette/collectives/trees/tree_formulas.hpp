// Formulas of trees: blocks gathered or scattered, and vectors broadcast or reduced, level by level.
#pragma once

#include <optional>
#include <vector>

#include "palmette/collectives/formula.hpp"
#include "palmette/collectives/trees/tree_shape.hpp"

namespace palmette::collectives {

/// One tree inside of all groups of a level: `members` leaders of `size` ranks each.
struct TreePhase {
    double members, size;
    TreeShape shape;
};

/// A tree over all ranks.
std::vector<TreePhase> flat_phases(const FormulaInput& input, TreeShape shape);
/// A tree with leaders at the levels that the specification names (binomial at all, where it names none), outermost
/// first. Throws base::Error on a value that is no tree.
std::vector<TreePhase> topology_phases(const FormulaInput& input);

/// gather and scatter, after Kandalla et al., IPDPS 2010. Nothing for trees with a bounded fan-out.
std::optional<double> blocks_along_s(const FormulaInput& input, const std::vector<TreePhase>& phases);

/// bcast and reduce: the time until the first segment has passed all phases, and that of the others behind it.
double vector_along_s(const FormulaInput& input, const std::vector<TreePhase>& phases);

/// bcast and reduce on a circulant graph, in `segments` parts. Nothing on nodes of several ranks.
std::optional<double> circulant_vector_s(const FormulaInput& input, double segments);

/// Binomial scatter or gather of a vector: messages halve from level to level, and its bytes are serialised on links
/// twice.
double shrinking_s(const Tiers& tiers, double vector);

}  // namespace palmette::collectives
