// Specifications of reduce scatter that every test of algorithms goes through.
#pragma once

#include <string>
#include <vector>

namespace palmette::test {

inline std::vector<std::string> reduce_scatter_specs() {
    return {
        "ring",
        "ring:nested=no,segment=32",
        "ring:order=rank",
        "recursive_halving",
        "recursive_halving:order=rank,segment=32",
        "pairwise",
        "pairwise:order=rank",
        "direct",
        "direct:order=rank",
        "leaders",
        "leaders:leaders=all,inside=binomial",
        "leaders:leaders=2,level=leaf",
        "leaders:leaders=2,inside=shared",
        "leaders:leaders=2,inside=shared,single=64",
        "leaders:leaders=all,inside=shared",
    };
}

}  // namespace palmette::test
