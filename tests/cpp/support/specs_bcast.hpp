// Specifications of bcast that every test of algorithms goes through.
#pragma once

#include <string>
#include <vector>

namespace palmette::test {

inline std::vector<std::string> bcast_specs() {
    return {"linear:order=rank",
            "k_nomial:radix=3,segment=24",
            "k_nomial:order=rank",
            "k_nomial:window=1",
            "k_ary:radix=3,segment=32",
            "chain:segment=32",
            "by_topology",
            "by_topology:node=shared,socket=shared,segment=20",
            "by_topology:node=shared,top=chain,single=64",
            "by_topology:node=chain,leaf=k_ary.2,top=chain",
            "by_topology:node=shared,top=chain,segment=32",
            "by_topology:node=postal.3,top=linear,relays=all",
            "by_topology:node=k_nomial.3,leaf=binomial,top=binomial,relays=2,segment=20",
            "by_topology:node=shared,top=linear,relays=3",
            "by_topology:node=linear,leaf=chain,top=chain,segment=20,lanes=2",
            "by_topology:node=binomial,top=linear,lanes=4",
            "by_topology:node=shared,top=linear,lanes=2",
            "by_topology:node=binomial,leaf=linear,top=binomial,segment=20,lanes=2,window=2",
            "bine:segment=32",
            "earliest",
            "earliest:helpers=3,first=groups,segment=40",
            "scatter_allgather",
            "scatter_allgather:allgather=recursive_doubling",
            "scatter_allgather:allgather=bruck.3",
            "circulant",
            "circulant:segments=5,order=rank",
            "circulant:segments=4,window=1",
            "leaders",
            "leaders:leaders=2,between=binomial,inside=chain,segment=24",
            "leaders:leaders=all,level=leaf,inside=chain",
            "leaders:leaders=6,level=leaf,between=chain,inside=binomial,segment=20",
            "leaders:leaders=3,level=leaf,between=linear",
            "node_pieces",
            "node_pieces:segment=24",
            "node_pieces:inside=halving.4",
            "node_pieces:inside=halving.3,segment=40",
            "node_pieces:inside=halving,segment=40",
            "node_pieces:inside=halving,relays=1"};
}

}  // namespace palmette::test
