// Specifications of further allgather algorithms that every test of algorithms goes through.
#pragma once

#include <string>
#include <vector>

namespace palmette::test {

inline std::vector<std::string> allgather_more_specs() {
    return {
        "linear",
        "linear:partners=xor",
        "circulant",
        "circulant:order=rank",
        "bine",
        "bine:order=rank",
        "locality_bruck",
        "locality_bruck:radix=2,level=leaf",
        "locality_bruck:radix=3,inside=shared",
        "locality_bruck:inside=shared,single=64",
        "by_topology",
        "by_topology:node=linear,leaf=linear,top=all",
        "by_topology:node=binomial,top=circulant",
        "by_topology:leaf=k_nomial.3,pod=linear,top=ring",
        "leaders:level=leaf,between=all",
        "leaders:leaders=2,between=circulant",
        "leaders:between=bine,inside=binomial",
    };
}

/// Of gather and scatter.
inline std::vector<std::string> gather_scatter_more_specs() { return {"bine", "bine:order=rank,segment=20"}; }

}  // namespace palmette::test
