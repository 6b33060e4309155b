#include "palmette/model/play/predict.hpp"

#include "palmette/model/play/predict_path.hpp"
#include "palmette/model/play/predict_play.hpp"

namespace palmette::model {
namespace {

Prediction simulate(const topology::Job& job, const Costs& costs, Sharing sharing, SimulatedSteps& steps) {
    steps.match();
    Simulator simulator(job, costs, sharing, steps);
    simulator.run();
    return critical_path(job, costs, steps, simulator);
}

}  // namespace

Prediction predict(const plan::Plan& plan, const topology::Job& job, const std::vector<std::int64_t>& block_bytes,
                   const Costs& costs, Sharing sharing) {
    SimulatedSteps steps(job, plan.request, block_bytes);
    for (const plan::Program& program : plan.programs) steps.add(program);
    return simulate(job, costs, sharing, steps);
}

Prediction predict(const topology::Job& job, const plan::Request& request, const collectives::Spec& spec,
                   const Costs& costs, Sharing sharing) {
    const std::vector<std::int64_t> block_bytes{request.block_bytes < 0 ? 0 : request.block_bytes};
    SimulatedSteps steps(job, request, block_bytes);
    const std::int32_t programs = job.size() + collectives::services_of(job, request, spec);
    for (std::int32_t r = 0; r < programs; ++r) steps.add(collectives::make_program(job, {r}, request, spec));
    return simulate(job, costs, sharing, steps);
}

}  // namespace palmette::model
