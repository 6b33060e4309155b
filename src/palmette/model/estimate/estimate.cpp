#include "palmette/model/estimate/estimate.hpp"

#include <algorithm>

#include "palmette/model/estimate/estimate_families.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::model {

using plan::Collective;

std::optional<double> Estimator::operator()(const plan::Request& request, const Spec& spec) const {
    if (job_.size() < 2) return 0.0;
    if (spec.find("order").value_or("topology") == "topology" || job_.in_topology_order())
        return on(tiers_, request, spec);
    return on(tiers_.in_rank_order(), request, spec);
}

std::optional<double> Estimator::on(const Tiers& tiers, const plan::Request& request, const Spec& spec) {
    const auto bytes = static_cast<double>(std::max<std::int64_t>(request.block_bytes, 0));
    const FormulaInput input{tiers,
                             bytes,
                             spec,
                             plan::is_reduction(request.collective),
                             request.collective == Collective::gather || request.collective == Collective::reduce,
                             request.shared_memory};
    if (collectives::algorithm_named(request.collective, spec.name).node_memory == collectives::NodeMemory::always) {
        if (tiers.nodes() > 1) return std::nullopt;
        return estimate_shared(input, request.collective);
    }
    switch (request.collective) {
        case Collective::gather:
        case Collective::scatter:
            return estimate_rooted_blocks(input);
        case Collective::bcast:
        case Collective::reduce:
            return estimate_rooted_vector(input);
        case Collective::allgather:
        case Collective::reduce_scatter:
            return estimate_all_blocks(input);
        case Collective::allreduce:
            return estimate_allreduce(input);
        case Collective::alltoall:
            return estimate_alltoall(input);
        case Collective::barrier:
            return estimate_barrier(input);
        case Collective::scan:
        case Collective::exscan:
            return estimate_scan(input);
        case Collective::composed:
            break;
    }
    return std::nullopt;
}

}  // namespace palmette::model
