// Specifications of alltoall that every test of algorithms goes through.
#pragma once

#include <string>
#include <vector>

namespace palmette::test {

inline std::vector<std::string> alltoall_specs() {
    return {
        "linear",
        "linear:partners=shift",
        "pairwise",
        "pairwise:window=1",
        "pairwise:window=3,partners=shift",
        "pairwise:window=2,partners=xor",
        "pairwise:window=1,levels=together",
        "pairwise:window=3,partners=shift,levels=together",
        "bruck",
        "bruck:radix=3",
        "bruck:radix=8",
        "node_aware",
        "node_aware:level=leaf,segment=20",
        "node_aware:inside=shared",
        "node_aware:inside=shared,single=64",
        "node_aware:rounds=2",
        "node_aware:rounds=7",
        "node_aware:rounds=3,segment=20,inside=shared",
        "leaders",
        "leaders:leaders=3,rounds=4",
        "leaders:leaders=2,split=sources,level=leaf,rounds=5",
        "leaders:leaders=4,split=sources,inside=shared,level=leaf,rounds=3",
        "leaders:leaders=3,level=leaf",
        "leaders:leaders=2,split=sources,segment=32",
        "leaders:leaders=2,inside=shared",
        "leaders:leaders=2,split=sources,inside=shared,level=leaf",
    };
}

}  // namespace palmette::test
