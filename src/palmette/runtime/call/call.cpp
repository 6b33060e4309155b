#include "palmette/runtime/call/call.hpp"

#include "palmette/base/error.hpp"
#include "palmette/runtime/transport/failed_ranks.hpp"

namespace palmette::runtime {

bool Call::find_slowly() {
    if (state_ && left_to_mpi()) return false;
    Refusal refusal = Refusal::no_state;
    Communicator* known = state_;
    // Fortran's nonblocking alltoallw bypasses palmette under Open MPI, so it isn't counted.
    const bool counts = function_ != select::Function::alltoallw && function_ != select::Function::neighbor_alltoallw;
    state_ = process_.communicator(comm_, refusal,
                                   blocking_ ? Process::Making::makes
                                   : counts  ? Process::Making::counts
                                             : Process::Making::never);
    if (state_) return true;
    refuse(refusal);
    // MPI_COMM_SELF and the like: cached for the next call.
    if (known) known->refuse_always(function_, blocking_, process_.report().refused_row(function_, refusal, {}));
    return false;
}

bool Call::refuse_always(Refusal refusal, const std::string& detail) {
    state_->refuse_always(function_, blocking_, process_.report().refused_row(function_, refusal, detail));
    return refuse(refusal, detail);
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
        key.exact = operation->exact();
        key.known = operation->known().has_value();
    }
    return take(work, state_->plan_for(key, state_->settings(process_.settings())), block_bytes);
}

void Call::bypass_until_due(const Work& work, MPI_Op op) const {
    constexpr std::int64_t fewest = 8;  // below, opening it takes as long
    Comparison* const comparison = work.plan->tally.comparison;
    if (!comparison || !comparison->mpi_meanwhile() || comparison->calls_to_next() < fewest || !may_bypass()) return;
    if (select::sizes_unknown(function_) || (block_.count == 0 && function_ != select::Function::barrier)) return;
    // The handle of a program's own operation may be reused for another one.
    if (op != MPI_OP_NULL && !work.plan->key.known) return;
    bypass_of(function_).open(comm_info(), process_.report().refused_row(function_, Refusal::undecided, {}),
                              {block_.count, block_.type, op, work.plan->key.root}, comparison->calls_to_next(),
                              comparison->calls());
}

bool Call::take(Work& work, CachedPlan& plan, std::int64_t row_bytes) {
    work.plan = &plan;
    if (plan.tally.comparison && plan.tally.comparison->lost() && !plan.refusal) [[unlikely]]
        state_->replace_lost(plan, state_->settings(process_.settings()));
    if (!plan.refusal) {
        if (!plan.tally.served) {
            plan.tally.served =
                &process_.report().served_row(function_, row_bytes, plan.route.algorithm, plan.route.reason, blocking_);
            if (Observer* observer = process_.observers().of_calls()) observer->plan_made(*state_, plan);
        }
        return true;
    }
    if (!plan.tally.refused)
        plan.tally.refused = &process_.report().refused_row(function_, *plan.refusal, plan.route.reason);
    plan.tally.refused->calls.add(rank() == 0);
    return false;
}

void Call::compared(const CachedPlan& plan) {
    state_->keep_verdict(plan);
    if (Observer* observer = process_.observers().of_calls()) observer->compared(*state_, plan);
}

double Call::begins(const Work& work) const {
    Observer* observer = process_.observers().of_calls();
    if (!observer) return 0;
    const double begin_s = PMPI_Wtime();
    observer->call_begins({work, work.state, work.plan, work.plan->key.function, begin_s, 0, MPI_SUCCESS});
    return begin_s;
}

std::optional<int> Call::run(Work& work) {
    const double begin_s = begins(work);
    const int code = work.run();
    if (work.left_to_mpi() && code == MPI_SUCCESS) {
        if (Observer* observer = process_.observers().of_calls())
            observer->call_left({work, work.state, work.plan, work.plan->key.function, begin_s, 0, code});
        refuse(*work.left_to_mpi());
        return std::nullopt;
    }
    return close(work, code, begin_s);
}

int Call::close(const Work& work, int code, double begin_s) {
    work.plan->tally.served->calls.add(rank() == 0);
    if (Observer* observer = process_.observers().of_calls())
        observer->call_ended({work, work.state, work.plan, work.plan->key.function, begin_s, PMPI_Wtime(), code});
    const MPI_Comm comm = state_->freed ? MPI_COMM_SELF : comm_;
    if (code == MPI_SUCCESS) {
        return work.fault != MPI_SUCCESS ? raise(comm, work.fault) : MPI_SUCCESS;
    }
    // After a failed transfer the shadow communicator can't be trusted; later calls go to the MPI.
    state_->unusable = Refusal::no_state;
    code = code_for_program(code, state_->shadow_comm(), comm);
    PMPI_Comm_call_errhandler(comm, code);
    return code;
}

int Call::raise(MPI_Comm comm, int error_class) const {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    PMPI_Comm_get_errhandler(comm, &handler);
    const bool returned = handler == MPI_ERRORS_RETURN;
    PMPI_Errhandler_free(&handler);
    PMPI_Comm_call_errhandler(comm, error_class);
    // MPICH considers an error handled when the program's own handler returns.
    return returned || process_.settings().mpi != "mpich" ? error_class : MPI_SUCCESS;
}

}  // namespace palmette::runtime
