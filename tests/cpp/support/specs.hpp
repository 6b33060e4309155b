// Every algorithm with several specifications each.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "palmette/collectives/registry.hpp"
#include "palmette/plan/program.hpp"
#include "support/specs_allgather_more.hpp"
#include "support/specs_allreduce.hpp"
#include "support/specs_alltoall.hpp"
#include "support/specs_barrier.hpp"
#include "support/specs_bcast.hpp"
#include "support/specs_reduce.hpp"
#include "support/specs_reduce_scatter.hpp"
#include "support/specs_scan.hpp"

namespace palmette::test {

using NamedSpec = std::pair<plan::Collective, std::string>;

inline const std::vector<NamedSpec>& every_spec() {
    static const std::vector<NamedSpec> specs = [] {
        using plan::Collective;
        std::vector<NamedSpec> out;
        for (const Collective c : {Collective::gather, Collective::scatter})
            for (const char* text :
                 {"linear", "linear:order=rank", "k_nomial", "k_nomial:radix=3",
                  "k_nomial:radix=4,order=rank,segment=24", "by_topology", "by_topology:node=linear,top=linear",
                  "by_topology:node=linear,leaf=k_nomial.3,top=binomial,segment=20", "by_topology:leaf=linear",
                  "by_topology:node=binomial,direct=64", "by_topology:node=linear,top=linear,relays=all",
                  "by_topology:node=k_nomial.3,top=binomial,relays=2,segment=20"})
                out.emplace_back(c, text);
        for (const char* text : {"ring",
                                 "ring:nested=no",
                                 "ring:segment=20",
                                 "ring:order=rank,segment=40",
                                 "ring:order=rank",
                                 "recursive_doubling",
                                 "recursive_doubling:order=rank",
                                 "bruck",
                                 "bruck:radix=3",
                                 "bruck:radix=8,order=rank",
                                 "neighbor_exchange",
                                 "neighbor_exchange:order=rank",
                                 "leaders",
                                 "leaders:leaders=2,between=bruck",
                                 "leaders:leaders=3,between=ring,inside=binomial",
                                 "leaders:leaders=2,between=recursive_doubling,layout=rail_major",
                                 "leaders:leaders=2,between=bruck.3,layout=node_major,inside=binomial",
                                 "leaders:between=neighbor_exchange,inside=k_nomial.3",
                                 "leaders:level=leaf,between=ring",
                                 "leaders:level=leaf,leaders=2,between=bruck,inside=binomial"})
            out.emplace_back(Collective::allgather, text);
        const auto add = [&out](Collective c, const std::vector<std::string>& texts) {
            for (const std::string& text : texts) out.emplace_back(c, text);
        };
        add(Collective::allgather, allgather_more_specs());
        add(Collective::gather, gather_scatter_more_specs());
        add(Collective::scatter, gather_scatter_more_specs());
        add(Collective::bcast, bcast_specs());
        add(Collective::reduce, reduce_specs());
        add(Collective::barrier, barrier_specs());
        add(Collective::allreduce, allreduce_specs());
        add(Collective::reduce_scatter, reduce_scatter_specs());
        add(Collective::scan, scan_specs());
        add(Collective::exscan, scan_specs());
        add(Collective::alltoall, alltoall_specs());
        for (std::size_t c = 0; c < plan::collective_count; ++c)
            for (const collectives::Algorithm& row : collectives::algorithms())
                if (row.collective == static_cast<Collective>(c) && row.name == "shared")
                    out.emplace_back(row.collective, "shared");
        return out;
    }();
    return specs;
}

}  // namespace palmette::test
