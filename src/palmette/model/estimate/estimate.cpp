#include "palmette/model/estimate/estimate.hpp"

#include "palmette/collectives/formula.hpp"

namespace palmette::model {

std::optional<double> Estimator::operator()(const plan::Request& request, const collectives::Spec& spec) const {
    if (job_.size() < 2) return 0.0;
    if (spec.find("order").value_or("topology") == "topology" || job_.in_topology_order())
        return on(tiers_, request, spec);
    return on(tiers_.in_rank_order(), request, spec);
}

std::optional<double> Estimator::on(const topology::Tiers& tiers, const plan::Request& request,
                                    const collectives::Spec& spec) {
    const auto formula = collectives::algorithm_named(request.collective, spec.name).formula;
    if (!formula) return std::nullopt;
    return formula(collectives::FormulaInput(tiers, request, spec));
}

}  // namespace palmette::model
