// Specifications of barrier that every test of algorithms goes through.
#pragma once

#include <string>
#include <vector>

namespace palmette::test {

inline std::vector<std::string> barrier_specs() {
    return {"dissemination",
            "dissemination:radix=4",
            "dissemination:radix=3,inside=shared",
            "by_topology",
            "by_topology:node=shared,socket=shared,leaf=binomial,top=chain",
            "by_topology:inside=binomial,top=k_ary.3",
            "leaders",
            "leaders:between=dissemination,level=node,inside=shared",
            "leaders:between=all,level=leaf,leaf=k_nomial.3,inside=linear"};
}

}  // namespace palmette::test
