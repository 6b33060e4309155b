#include "palmette/runtime/state/work.hpp"
#include "palmette/runtime/ways/way.hpp"

namespace palmette::runtime {

Way::Runs InBatches::runs(const CachedPlan& plan) const {
    const std::int64_t all = plan.key.block_bytes;
    return {&plan.bound, static_cast<std::uint32_t>(all / bytes_), all % bytes_ > 0 ? &last_ : nullptr};
}

int InBatches::run(Work& call, MpiExecutor& executor) {
    const execute::BoundProgram& program = call.plan->bound;
    const std::int64_t all = call.plan->key.block_bytes;
    const execute::Environment whole = call.environment(executor);
    execute::Environment part = whole;
    executor.prepare(program);
    executor.prepare(last_);
    for (std::int64_t at = 0; at < all; at += bytes_) {
        part.bases.send = whole.bases.send ? whole.bases.send + at : nullptr;
        part.bases.recv = whole.bases.recv ? whole.bases.recv + at : nullptr;
        const int error = executor.run(at + bytes_ <= all ? program : last_, part);
        if (error != MPI_SUCCESS) return error;
    }
    return MPI_SUCCESS;
}

}  // namespace palmette::runtime
