// gather and scatter, by_topology: a hierarchical tree with one leader per group at the chosen levels of the machine.
//
//   p = 8 on two leaves of two nodes, root 0, node=linear,leaf=linear,top=linear:
//
//       leaf 0 ............ leaf 1
//       0 ── 2              4 ── 6      leaders of nodes with the leader of their leaf
//       │    │              │    │
//       1    3              5    7      ranks with the leader of their node; 4 with 0 across the top
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/rooted.hpp"
#include "palmette/collectives/trees/tree_formulas.hpp"

namespace palmette::collectives {
namespace {

Program make_gather_by_topology(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return gather_along(job, rank, topology_tree(job, rank, request, spec));
}

Program make_scatter_by_topology(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return scatter_along(job, rank, topology_tree(job, rank, request, spec));
}

// gather and scatter are each other reversed in time.
constexpr std::string_view candidates_by_topology =
    "by_topology:node=linear,top=linear by_topology:node=linear,leaf=linear,top=linear "
    "by_topology:node=linear,top=linear,relays=all by_topology:node=k_nomial.5,top=k_nomial.5 "
    "by_topology:node=postal.5,top=postal.5 by_topology:node=postal.4,top=postal.12";
constexpr std::string_view samples_by_topology =
    "by_topology by_topology:node=linear,top=linear by_topology:node=linear,leaf=k_nomial.3,top=binomial,segment=20 "
    "by_topology:leaf=linear by_topology:node=binomial,direct=64 by_topology:node=linear,top=linear,relays=all "
    "by_topology:node=k_nomial.3,top=binomial,relays=2,segment=20";

std::optional<double> formula_by_topology(const FormulaInput& input) {
    return blocks_along_s(input, topology_phases(input));
}

}  // namespace

const Algorithm gather_by_topology{
    .collective = Collective::gather,
    .name = "by_topology",
    .sentence =
        "Leaders per node, chassis, leaf and tier: each level has its own tree, so every uplink is crossed once per "
        "group.",
    .source = "Kandalla, Subramoni, Vishnu, Panda, IPDPS workshops 2010; any number of levels here",
    .keys =
        "LEVEL=linear|binomial|k_nomial.K|postal.K for each level with leaders (all, binomial), top=..., "
        "segment=SIZE, relays=R|all (1), direct=SIZE",
    .relays = true,
    .refuse = refuse_by_topology,
    .make = make_gather_by_topology,
    .formula = formula_by_topology,
    .candidates = candidates_by_topology,
    .samples = samples_by_topology,
};

const Algorithm scatter_by_topology{
    .collective = Collective::scatter,
    .name = "by_topology",
    .sentence =
        "Leaders per node, chassis, leaf and tier: each level has its own tree, so every uplink is crossed once per "
        "group.",
    .source = "Kandalla, Subramoni, Vishnu, Panda, IPDPS workshops 2010; any number of levels here",
    .keys =
        "LEVEL=linear|binomial|k_nomial.K|postal.K for each level with leaders (all, binomial), top=..., "
        "segment=SIZE, relays=R|all (1), direct=SIZE",
    .relays = true,
    .refuse = refuse_by_topology,
    .make = make_scatter_by_topology,
    .formula = formula_by_topology,
    .candidates = candidates_by_topology,
    .samples = samples_by_topology,
};

}  // namespace palmette::collectives
