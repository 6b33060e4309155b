#include "palmette/model/play/predict.hpp"

#include "palmette/model/play/predict_path.hpp"
#include "palmette/model/play/predict_play.hpp"

namespace palmette::model {
namespace {

Prediction play(const topology::Job& job, const Costs& costs, Sharing sharing, PlayedSteps& steps) {
    steps.match();
    Player player(job, costs, sharing, steps);
    player.run();
    return longest_chain(job, costs, steps, player);
}

}  // namespace

Prediction predict(const plan::Plan& plan, const topology::Job& job, const std::vector<std::int64_t>& block_bytes,
                   const Costs& costs, Sharing sharing) {
    PlayedSteps steps(job, plan.request, block_bytes);
    for (const plan::Program& program : plan.programs) steps.add(program);
    return play(job, costs, sharing, steps);
}

Prediction predict(const topology::Job& job, const plan::Request& request, const collectives::Spec& spec,
                   const Costs& costs, Sharing sharing) {
    const std::vector<std::int64_t> block_bytes{request.block_bytes < 0 ? 0 : request.block_bytes};
    PlayedSteps steps(job, request, block_bytes);
    for (std::int32_t r = 0; r < job.size(); ++r) steps.add(collectives::make_program(job, {r}, request, spec));
    return play(job, costs, sharing, steps);
}

}  // namespace palmette::model
