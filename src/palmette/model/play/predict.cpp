#include "palmette/model/play/predict.hpp"

#include <algorithm>

#include "palmette/model/play/predict_path.hpp"
#include "palmette/model/play/predict_play.hpp"

namespace palmette::model {
namespace {

Prediction simulate(const topology::Job& job, const Costs& costs, Sharing sharing, StepGraph& steps) {
    steps.match();
    Simulator simulator(job, costs, sharing, steps);
    simulator.run();
    return critical_path(job, costs, steps, simulator);
}

}  // namespace

Prediction predict(const plan::Plan& plan, const topology::Job& job, const std::vector<std::int64_t>& block_bytes,
                   const Costs& costs, Sharing sharing) {
    StepGraph steps(job, plan.request, block_bytes);
    for (const plan::Program& program : plan.programs) steps.add(program);
    return simulate(job, costs, sharing, steps);
}

Prediction predict(const topology::Job& job, const plan::Request& request, const collectives::Spec& spec,
                   const Costs& costs, Sharing sharing) {
    const std::vector<std::int64_t> block_bytes{request.block_bytes < 0 ? 0 : request.block_bytes};
    StepGraph steps(job, request, block_bytes);
    const std::int32_t programs = job.size() + collectives::services_of(job, request, spec);
    for (std::int32_t r = 0; r < programs; ++r) steps.add(collectives::make_program(job, {r}, request, spec));
    return simulate(job, costs, sharing, steps);
}

std::optional<double> predict_within(const PlayLimits& limits, const topology::Job& job, const plan::Request& request,
                                     const collectives::Spec& spec, const Costs& costs) {
    const std::vector<std::int64_t> block_bytes{request.block_bytes < 0 ? 0 : request.block_bytes};
    StepGraph steps(job, request, block_bytes);
    const std::int32_t programs = job.size() + collectives::services_of(job, request, spec);
    if (static_cast<std::size_t>(programs) > limits.steps) return std::nullopt;  // each has a step, or more
    std::size_t regions = 0;
    for (std::int32_t r = 0; r < programs; ++r) {
        const plan::Program program = collectives::make_program(job, {r}, request, spec);
        steps.add(program);
        regions += program.regions.size();
        // Most programs are as long as the others: from the fifth on, refuses early what will be too long.
        const double left = r < 4 ? 1 : std::max(1.0, static_cast<double>(programs) / (r + 1) / 4);
        if (static_cast<double>(steps.steps.size()) * left > static_cast<double>(limits.steps) ||
            static_cast<double>(regions) * left > static_cast<double>(limits.regions))
            return std::nullopt;
    }
    steps.match();
    Simulator simulator(job, costs, Sharing::evenly, steps);
    if (!simulator.run_within(limits.seconds, limits.events)) return std::nullopt;
    const std::vector<double>& done = simulator.times().done;
    return done.empty() ? 0 : *std::max_element(done.begin(), done.end());
}

}  // namespace palmette::model
