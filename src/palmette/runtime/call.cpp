#include "palmette/runtime/call.hpp"

#include <cstdio>

#include "palmette/base/units.hpp"

namespace palmette::runtime {

std::nullopt_t Call::refuse(Refusal refusal, const std::string& detail) {
    int rank = 0;
    if (state_)
        rank = state_->rank();
    else if (comm_ != MPI_COMM_NULL && refusal != Refusal::erroneous_arguments &&
             refusal != Refusal::before_init_or_after_finalize)
        PMPI_Comm_rank(comm_, &rank);
    Report::refused(process_.report().refused_row(function_, refusal, detail), rank == 0);
    return std::nullopt;
}

bool Call::open() {
    if (const auto off = process_.off()) {
        refuse(*off);
        return false;
    }
    if (comm_ == MPI_COMM_NULL) {
        refuse(Refusal::erroneous_arguments);
        return false;
    }
    Refusal refusal = Refusal::no_state;
    state_ = process_.communicator(comm_, refusal);
    if (!state_) refuse(refusal);
    return state_ != nullptr;
}

const CachedPlan* Call::plan(int root, std::int64_t block_bytes) {
    CachedPlan& plan = state_->plan_for(function_, root, block_bytes, process_.settings());
    if (!plan.refusal) {
        if (!plan.served)
            plan.served = &process_.report().served_row(function_, block_bytes, plan.algorithm, plan.reason);
        return &plan;
    }
    if (!plan.refused) plan.refused = &process_.report().refused_row(function_, *plan.refusal, plan.reason);
    Report::refused(*plan.refused, rank() == 0);
    return nullptr;
}

void Call::close(const CachedPlan& plan, int code, double begin) {
    const bool leads = rank() == 0;
    process_.report().served(*plan.served, timed() ? PMPI_Wtime() - begin : 0, leads);
    if (process_.settings().verbose > 1 && leads)
        std::fprintf(stderr, "palmette: %s of %s on %d ranks by %s (%s)\n", select::name_of(function_),
                     plan.block_bytes < 0 ? "unknown size" : base::format_size(plan.block_bytes).c_str(), size(),
                     plan.algorithm.c_str(), plan.reason.c_str());
    if (code == MPI_SUCCESS) return;
    // After a failed transfer the hidden communicator can't be trusted; later calls go to the MPI.
    state_->unusable = Refusal::no_state;
    PMPI_Comm_call_errhandler(comm_, code);
}

}  // namespace palmette::runtime
