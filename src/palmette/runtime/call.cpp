#include "palmette/runtime/call.hpp"

#include <cstdio>

#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"
#include "palmette/model/bound.hpp"
#include "palmette/model/own_messages.hpp"
#include "palmette/runtime/failed_ranks.hpp"
#include "palmette/runtime/mpi_beside.hpp"
#include "palmette/runtime/size_class.hpp"

namespace palmette::runtime {
namespace {

/// Of those that are compared together.
std::string phrase_of_sizes(std::int64_t block_bytes) {
    if (block_bytes < 0) return "unknown size";
    const int like = size_class(block_bytes);
    if (like < 2) return base::format_size(block_bytes);
    return base::cat(base::format_size(largest_of(like - 1) + 1), " to ", base::format_size(largest_of(like)));
}

std::string why_lost(const CachedPlan& plan) {
    const Comparison& comparison = *plan.comparison;
    return base::cat(plan.algorithm, " took ", base::format_duration(comparison.ours_s()), ", the MPI's ",
                     base::format_duration(comparison.mpi_s()), " (medians of ", comparison.pairs(), " pairs)");
}

/// The physical limit of blocks of these lengths, of one for all; 0 where nothing is known of the machine.
double bound_of(const CachedPlan& plan, const topology::Job& job, const std::vector<std::int64_t>& lengths) {
    const PlanKey& key = plan.key;
    const plan::Request request{plan.collective, plan::Rank{key.root}, key.block_bytes, key.element_bytes, key.ordered};
    return model::bound(job, request, lengths).seconds;
}

/// The buffer whose blocks a rank knows all lengths of, where they may differ: at the root, or at any rank. Null at others, and where nobody knows them.
const CallerBuffer* all_blocks(const Work& work, int rank) {
    const PlanKey& key = work.plan->key;
    switch (key.function) {
        case select::Function::gatherv:
            return rank == key.root ? &work.recv : nullptr;
        case select::Function::scatterv:
            return rank == key.root ? &work.send : nullptr;
        case select::Function::allgatherv:
            return rank == 0 ? &work.recv : nullptr;
        case select::Function::reduce_scatter:
            return rank == 0 ? &work.send : nullptr;
        default:
            return nullptr;
    }
}

std::string why_kept(const CachedPlan& plan) {
    return base::cat(select::name_of(plan.key.function), " of ", phrase_of_sizes(plan.key.block_bytes), ": ",
                     why_lost(plan), "; kept, so that sums have the same bits from run to run. ",
                     setting_of(plan.key.function),
                     "=mpi leaves them to the MPI, PALMETTE_GIVE_UP_SUMS=1 gives up what loses");
}

}  // namespace

bool Call::open_slowly() {
    if (state_ && left_to_mpi()) return false;
    Refusal refusal = Refusal::no_state;
    Communicator* known = state_;
    // Fortran's nonblocking alltoallw goes past palmette under Open MPI, so nobody counts it.
    const bool counts = function_ != select::Function::alltoallw;
    state_ = process_.communicator(comm_, refusal,
                                   blocking_ ? Process::Making::makes
                                   : counts  ? Process::Making::counts
                                             : Process::Making::never);
    if (state_) return !left_to_mpi();
    refuse(refusal);
    // MPI_COMM_SELF and the like: found at once the next time.
    if (known) known->refuse_always(function_, blocking_, process_.report().refused_row(function_, refusal, {}));
    return false;
}

bool Call::refuse(Refusal refusal, const std::string& detail) {
    int rank = 0;
    if (state_)
        rank = state_->rank();
    else if (comm_ != MPI_COMM_NULL && refusal != Refusal::erroneous_arguments &&
             refusal != Refusal::before_init_or_after_finalize)
        PMPI_Comm_rank(comm_, &rank);
    process_.report().refused_row(function_, refusal, detail).calls.add(rank == 0);
    return false;
}

bool Call::plan(Work& work, int root, std::int64_t block_bytes, const Operation* operation) {
    PlanKey key{function_, blocking_, false, root, block_bytes, 1};
    if (operation) {
        key.ordered = !operation->commutative();
        key.element_bytes = operation->layout().extent;
        key.comparing = comparing(*operation, block_bytes);
    }
    CachedPlan& plan = state_->plan_for(key, state_->settings(process_.settings()));
    work.plan = &plan;
    if (plan.comparison && plan.comparison->lost() && !plan.refusal) [[unlikely]]
        give_up(plan);
    if (!plan.refusal) {
        if (!plan.served) {
            plan.served = &process_.report().served_row(function_, block_bytes, plan.algorithm, plan.reason, blocking_);
            if (timed() && state_->leads() && select::sizes_alike(function_))
                plan.bound_s = bound_of(plan, state_->job(), {block_bytes});
        }
        return true;
    }
    if (!plan.refused) plan.refused = &process_.report().refused_row(function_, *plan.refusal, plan.reason);
    plan.refused->calls.add(rank() == 0);
    return false;
}

Comparing Call::comparing(const Operation& operation, std::int64_t block_bytes) const {
    if (operation.exact()) return Comparing::in_turn;
    return MpiBeside::can_do(function_, operation, block_bytes, size()) ? Comparing::beside : Comparing::never;
}

void Call::compared(const CachedPlan& plan) {
    if (!state_->leads()) return;
    const Comparison& comparison = *plan.comparison;
    Report::Compared& row = process_.report().compared_row(function_, plan.key.block_bytes, plan.algorithm);
    row.cost_s += comparison.last_cost_s();
    if (!comparison.counts()) return;
    ++row.pairs;
    row.ours_s = comparison.ours_s();
    row.mpi_s = comparison.mpi_s();
    if (comparison.pairs() > 1) --row.of(comparison.verdict_before());
    ++row.of(comparison.verdict());
    if (comparison.verdict() != select::Verdict::slower) return;
    if (comparison.keeps() && comparison.verdict_before() != select::Verdict::slower)
        process_.report().note(why_kept(plan));
    if (!comparison.keeps() && process_.settings().verbose > 0)
        std::fprintf(stderr, "palmette: %s of %s on %d ranks is the MPI's from here on: %s\n",
                     select::name_of(function_), phrase_of_sizes(plan.key.block_bytes).c_str(), size(),
                     why_lost(plan).c_str());
}

void Call::give_up(CachedPlan& plan) {
    plan.refusal = Refusal::slower;
    plan.reason = why_lost(plan);
}

int Call::run(Work& work) {
    const double begin = timed() ? PMPI_Wtime() : 0;
    const int code = work.run();
    return close(work, code, begin);
}

int Call::close(const Work& work, int code, double begin) {
    const bool leads = rank() == 0;
    const CachedPlan& plan = *work.plan;
    plan.served->calls.add(leads);
    if (timed()) {
        process_.report().timed(*plan.served, PMPI_Wtime() - begin);
        if (code == MPI_SUCCESS) bound(work);
    }
    if (process_.settings().verbose > 1 && leads)
        std::fprintf(stderr, "palmette: %s of %s on %d ranks by %s (%s)\n", select::name_of(function_),
                     plan.key.block_bytes < 0 ? "unknown size" : base::format_size(plan.key.block_bytes).c_str(),
                     size(), plan.algorithm.c_str(), plan.reason.c_str());
    const MPI_Comm comm = state_->freed ? MPI_COMM_SELF : comm_;
    if (code == MPI_SUCCESS) {
        return work.fault != MPI_SUCCESS ? raise(comm, work.fault) : MPI_SUCCESS;
    }
    // After a failed transfer the hidden communicator can't be trusted; later calls go to the MPI.
    state_->unusable = Refusal::no_state;
    code = code_for_program(code, state_->hidden(), comm);
    PMPI_Comm_call_errhandler(comm, code);
    return code;
}

int Call::raise(MPI_Comm comm, int error_class) const {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    PMPI_Comm_get_errhandler(comm, &handler);
    const bool returned = handler == MPI_ERRORS_RETURN;
    PMPI_Errhandler_free(&handler);
    PMPI_Comm_call_errhandler(comm, error_class);
    // MPICH takes an error for dealt with when the program's own handler returns.
    return returned || process_.settings().mpi != "mpich" ? error_class : MPI_SUCCESS;
}

void Call::bound(const Work& work) {
    CachedPlan& plan = *work.plan;
    Report& report = process_.report();
    if (select::sizes_alike(function_)) {
        if (plan.bound_s > 0) report.bounded(*plan.served, plan.bound_s);
        return;
    }
    if (const CallerBuffer* blocks = all_blocks(work, rank())) {
        std::vector<std::int64_t> lengths(static_cast<std::size_t>(size()));
        for (int r = 0; r < size(); ++r) lengths[static_cast<std::size_t>(r)] = blocks->bytes(r);
        if (lengths != plan.bounded) {
            plan.bound_s = bound_of(plan, state_->job(), lengths);
            plan.bounded = std::move(lengths);
        }
        if (plan.bound_s > 0 || blocks->total() == 0) report.bounded(*plan.served, plan.bound_s);
        return;
    }
    const topology::Job* world = process_.world();
    if (plan.collective != plan::Collective::alltoall || !world) return;
    const auto messages = model::own_messages(
        state_->job(), plan::Rank{rank()}, [&](std::int32_t other) { return work.send.bytes(other); },
        [&](std::int32_t other) { return work.recv.bytes(other); });
    report.bounded(*plan.served, messages, state_->job(), *world, plan::Rank{process_.world_rank()}, rank() == 0);
}

}  // namespace palmette::runtime
