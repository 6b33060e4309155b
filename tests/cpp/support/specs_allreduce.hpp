// Specifications of allreduce that every test of algorithms goes through.
#pragma once

#include <string>
#include <vector>

namespace palmette::test {

inline std::vector<std::string> allreduce_specs() {
    return {
        "recursive_doubling",
        "recursive_doubling:order=rank,segment=20",
        "recursive_multiplying",
        "recursive_multiplying:radix=3,segment=24",
        "all",
        "rabenseifner",
        "rabenseifner:order=rank,segment=4",
        "ring",
        "ring:nested=no,segment=4",
        "direct",
        "reduce_bcast",
        "reduce_bcast:node=linear,leaf=k_nomial.3,top=linear,segment=20",
        "leaders",
        "leaders:leaders=all,between=rabenseifner",
        "leaders:leaders=2,between=ring,inside=binomial,segment=8",
        "leaders:leaders=3,between=direct,level=leaf,segment=4",
        "leaders:between=all,level=leaf,inside=k_nomial.3",
        "leaders:leaders=all,between=recursive_multiplying.3,inside=shared",
        "leaders:leaders=2,between=direct,inside=shared,level=leaf,segment=4",
        "leaders:leaders=5,between=recursive_doubling,inside=shared,segment=8",
        "leaders:leaders=all,between=ring,inside=shared,single=64",
        "leaders:leaders=2,between=all,level=socket,inside=shared",
        "node_aware",
        "node_aware:radix=2,inside=recursive_doubling",
        "node_aware:radix=3,inside=all,segment=20",
        "node_pieces",
        "node_pieces:segment=20,window=2",
        "node_pieces:inside=halving.4",
        "node_pieces:inside=halving.3,complete=tree,segment=24",
        "node_pieces:inside=halving,complete=tree,segment=40",
    };
}

}  // namespace palmette::test
