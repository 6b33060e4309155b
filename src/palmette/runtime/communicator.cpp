#include "palmette/runtime/communicator.hpp"

#include "palmette/base/error.hpp"
#include "palmette/collectives/registry.hpp"

namespace palmette::runtime {

CachedPlan& Communicator::plan_for(select::Function function, std::int32_t root, std::int64_t block_bytes,
                                   const Settings& settings) {
    for (const auto& plan : plans_)
        if (plan->function == function && plan->root == root && plan->block_bytes == block_bytes) return *plan;
    auto made = std::make_unique<CachedPlan>();
    made->function = function;
    made->root = root;
    made->block_bytes = block_bytes;
    fill(*made, settings);
    if (plans_.size() < most_plans) {
        plans_.push_back(std::move(made));
        return *plans_.back();
    }
    next_victim_ = (next_victim_ + 1) % most_plans;
    plans_[next_victim_] = std::move(made);
    return *plans_[next_victim_];
}

void Communicator::fill(CachedPlan& plan, const Settings& settings) const {
    const plan::Request request{select::collective_of(plan.function), plan::Rank{plan.root}, plan.block_bytes};
    select::Choice choice;
    if (const auto& forced = settings.forced[static_cast<std::size_t>(plan.function)]) {
        choice = {forced->algorithm, "forced by " + forced->source};
    } else {
        choice = settings.table.choose(plan.function, job_, request.root, plan.block_bytes, settings.mpi);
    }
    plan.reason = choice.reason;
    if (!choice.algorithm) {
        plan.refusal = Refusal::chosen;
        return;
    }
    plan.algorithm = choice.algorithm->text();
    try {
        const collectives::Algorithm& row = collectives::algorithm_named(request.collective, choice.algorithm->name);
        plan.relays = row.relays;
        if (const auto reason = row.refuse(job_, request, *choice.algorithm)) {
            plan.refusal = Refusal::precondition;
            plan.reason = *reason;
            return;
        }
        if (collectives::tag_limit(job_, request, *choice.algorithm) > tag_limit_) {
            plan.refusal = Refusal::too_many_tags;
            plan.reason = plan.algorithm;
            return;
        }
        plan.program = row.make(job_, plan::Rank{rank_}, request, *choice.algorithm);
    } catch (const base::Error& error) {
        plan.refusal = Refusal::precondition;
        plan.reason = error.what();
        return;
    }
    const bool uniform = plan.function == select::Function::gather || plan.function == select::Function::scatter ||
                         plan.function == select::Function::allgather;
    if (!uniform) return;
    Layout layout;
    layout.uniform_bytes = plan.block_bytes;
    layout.all_ranks = plan.function == select::Function::scatter ? plan::Buffer::send : plan::Buffer::recv;
    plan.bound = bind(plan.program, job_, layout);
    plan.program = {};
}

}  // namespace palmette::runtime
