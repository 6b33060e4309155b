// reduce along a tree: the trees of bcast, reversed in time. Each rank combines its own vector with its children's,
// slice by slice.
//
//   p = 8, root 0, k_nomial:        0              root 5, where the order of ranks must be kept: a tree for each side
//                                4  2  1
//                               6 5 3                     1  3  4   5   6  7
//                               7                         0  2              every subtree is an interval
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/rooted_vector.hpp"

namespace palmette::collectives {
namespace {

Program make_flat(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return reduce_along(job, rank, request, flat_vector_tree(job, rank, request, spec));
}
Program make_by_topology(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return reduce_along(job, rank, request, topology_vector_tree(job, rank, request, spec));
}
Program make_earliest(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return reduce_along(job, rank, request, earliest_vector_tree(job, rank, request, spec));
}
Program make_bine(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return reduce_along(job, rank, request, bine_vector_tree(job, rank, request, spec));
}

constexpr std::string_view order_needs = "an operation that doesn't commute needs order=rank (its default then)";

}  // namespace

const Algorithm reduce_linear{
    .collective = Collective::reduce,
    .name = "linear",
    .sentence = "Every rank sends its vector to the root, which combines them all: no dependent messages.",
    .source = "folklore; Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
    .keys = "order=topology|rank, segment=SIZE",
    .preconditions = order_needs,
    .refuse = refuse_flat_vector,
    .make = make_flat,
    .tags = one_tag_a_slice,
    .formula = flat_vector_formula,
    .samples = "linear linear:order=rank,segment=32",
};

const Algorithm reduce_k_nomial{
    .collective = Collective::reduce,
    .name = "k_nomial",
    .sentence = "A k-nomial tree (binomial by default) in topology or rank order: ceil(log_k p) hops.",
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005 (binomial); two trees at the root keep an order here",
    .keys = "radix=K (2), order=topology|rank, segment=SIZE",
    .preconditions = order_needs,
    .refuse = refuse_flat_vector,
    .make = make_flat,
    .tags = one_tag_a_slice,
    .formula = flat_vector_formula,
    .candidates = "k_nomial k_nomial:order=rank k_nomial:radix=3 k_nomial:radix=4,order=rank",
    .samples = "k_nomial:radix=3,segment=24 k_nomial:order=rank",
};

const Algorithm reduce_k_ary{
    .collective = Collective::reduce,
    .name = "k_ary",
    .sentence = "A tree in which every rank has at most k children, for pipelining: a rank receives k vectors at most.",
    .source = "Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel, Dongarra, Cluster Computing 10(2), 2007",
    .keys = "radix=K (2), order=topology|rank, segment=SIZE (a 16th of the vector, 4 to 64 KB)",
    .preconditions = order_needs,
    .refuse = refuse_flat_vector,
    .make = make_flat,
    .tags = one_tag_a_slice,
    .formula = flat_vector_formula,
    .samples = "k_ary:radix=3,segment=32",
};

const Algorithm reduce_chain{
    .collective = Collective::reduce,
    .name = "chain",
    .sentence =
        "A pipelined chain through all ranks that enters no group of any level twice: every link carries the vector "
        "once.",
    .source = "Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007; the order round the root is palmette's",
    .keys = "order=topology|rank, segment=SIZE (a 16th of the vector, 4 to 64 KB)",
    .preconditions = order_needs,
    .refuse = refuse_flat_vector,
    .make = make_flat,
    .tags = one_tag_a_slice,
    .formula = flat_vector_formula,
    .samples = "chain:segment=32",
};

const Algorithm reduce_by_topology{
    .collective = Collective::reduce,
    .name = "by_topology",
    .sentence =
        "Leaders per node, chassis, leaf and tier combine their subtrees; inside of the node directly from shared "
        "memory.",
    .source = "Kandalla, Subramoni, Vishnu, Panda, IPDPS workshops 2010, for reduce and with any number of levels here",
    .keys =
        "LEVEL=linear|binomial|k_nomial.K|postal.K|k_ary.K|chain, inside of the node also shared, for each level with "
        "leaders (by size: stars or chains), inside=... for all levels inside of the node, top=..., segment=SIZE, "
        "relays=R|all (1), single=SIZE (never), with shared: exposures from there on are read by single copy",
    .preconditions =
        "shared only for the level of nodes and those inside; an operation that doesn't commute needs ranks in "
        "topology order",
    .refuse = refuse_topology_vector,
    .make = make_by_topology,
    .tags = one_tag_a_slice,
    .node_memory = NodeMemory::where_asked,
    .pipelined = chained_on_top,
    .formula = topology_vector_formula,
    .candidates =
        "by_topology:node=linear,leaf=linear,top=linear by_topology:node=postal.4,top=postal.4 "
        "by_topology:node=k_nomial.4,top=k_nomial.4 by_topology:node=k_nomial.3,top=postal.12,relays=4 "
        "by_topology:node=postal.5,top=linear,relays=all by_topology:node=linear,leaf=k_nomial.4,top=k_nomial.4 "
        "by_topology:node=linear,leaf=chain,top=chain,segment=4K "
        "by_topology:node=linear,leaf=chain,top=chain,segment=8K "
        "by_topology:node=linear,leaf=chain,top=chain,segment=32K by_topology:node=shared,top=linear "
        "by_topology:node=shared,top=k_nomial.4 by_topology:node=shared,leaf=chain,top=chain,segment=32K",
    .samples =
        "by_topology by_topology:node=shared,socket=shared,segment=20 by_topology:node=shared,top=chain,single=64 "
        "by_topology:node=chain,leaf=k_ary.2,top=chain by_topology:node=shared,top=chain,segment=32 "
        "by_topology:node=linear,top=linear,relays=all "
        "by_topology:node=k_nomial.3,leaf=binomial,top=binomial,relays=2,segment=20 "
        "by_topology:node=shared,top=linear,relays=3",
};

const Algorithm reduce_bine{
    .collective = Collective::reduce,
    .name = "bine",
    .sentence = "A binomial tree with negabinary distances: as many hops, with peers a third nearer on average.",
    .source = "De Sensi et al., SC 2025 (Bine trees); numbers of ranks that are no power of two by pairs, here",
    .keys = "order=topology|rank, segment=SIZE",
    .preconditions = "an operation that commutes",
    .refuse = refuse_bine_vector,
    .make = make_bine,
    .tags = one_tag_a_slice,
    .samples = "bine:segment=32",
    .kin = "k_nomial",
};

const Algorithm reduce_earliest{
    .collective = Collective::reduce,
    .name = "earliest",
    .sentence = "The earliest-arrival broadcast tree by this machine's costs, reversed in time.",
    .source =
        "Bhat, Raghavendra, Prasanna, JPDC 63(3), 2003 (earliest completing edge first), for hosts of several ranks "
        "here",
    .keys = "helpers=H (2), first=nodes|groups, segment=SIZE",
    .preconditions = "an operation that commutes; latencies and overheads of all levels; 1,024 nodes at most",
    .refuse = refuse_earliest_vector,
    .make = make_earliest,
    .tags = one_tag_a_slice,
    .samples = "earliest earliest:helpers=1,first=groups,segment=40",
};

}  // namespace palmette::collectives
