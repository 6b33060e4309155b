// Specifications of reduce that every test of algorithms goes through.
#pragma once

#include <string>
#include <vector>

namespace palmette::test {

inline std::vector<std::string> reduce_specs() {
    return {"linear",
            "linear:order=rank,segment=32",
            "k_nomial:radix=3,segment=24",
            "k_nomial:order=rank",
            "k_ary:radix=3,segment=32",
            "chain:segment=32",
            "by_topology",
            "by_topology:node=shared,socket=shared,segment=20",
            "by_topology:node=shared,top=chain,single=64",
            "by_topology:node=chain,leaf=k_ary.2,top=chain",
            "by_topology:node=shared,top=chain,segment=32",
            "by_topology:node=linear,top=linear,relays=all",
            "by_topology:node=k_nomial.3,leaf=binomial,top=binomial,relays=2,segment=20",
            "by_topology:node=shared,top=linear,relays=3",
            "bine:segment=32",
            "earliest",
            "earliest:helpers=1,first=groups,segment=40",
            "reduce_scatter_gather",
            "ring_gather",
            "node_pieces",
            "node_pieces:inside=halving,segment=40",
            "node_pieces:segment=24,window=2",
            "node_pieces:inside=halving.4",
            "node_pieces:inside=halving.3,segment=24"};
}

}  // namespace palmette::test
