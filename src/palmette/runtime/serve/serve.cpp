#include "palmette/runtime/serve/serve.hpp"

#include <chrono>
#include <thread>

#include "palmette/base/never_destroyed.hpp"
#include "palmette/runtime/call/prepare.hpp"
#include "palmette/runtime/call/shadow_reduction.hpp"
#include "palmette/runtime/check/check_arguments.hpp"
#include "palmette/runtime/serve/background.hpp"

namespace palmette::runtime {
namespace {

/// Reuses its buffers between calls. One call at a time in a thread.
thread_local Work& kept = base::per_thread<Work, Call>();

/// Set where the MPI does this thread's current call so that it can be compared.
thread_local CachedPlan* measured_next = nullptr;

/// With what tests add.
int run_delayed(Call& call) {
    const double delay_s = Process::instance().settings().pretended_delay_s;
    if (delay_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(delay_s));
    return call.run(kept);
}

/// Both calls of a pair at once: the MPI's result is thrown away.
int run_and_compare(Call& call, Comparison& comparison) {
    const CachedPlan& plan = *kept.plan;
    before_blocking(call.comm());
    const double begin = PMPI_Wtime();
    ShadowReduction beside(kept);
    comparison.prepared(PMPI_Wtime() - begin);
    if (!beside.has_memory_everywhere()) {
        comparison.postpone();
        return run_delayed(call);
    }
    int code = MPI_SUCCESS;
    int of_mpi = MPI_SUCCESS;
    bool settled = false;
    for (int half = 0; half < 2; ++half)
        settled = comparison.turn() == Comparison::Turn::mpi
                      ? comparison.time([&beside] { return beside.run(); }, of_mpi)
                      : comparison.time([&call] { return run_delayed(call); }, code);
    if (settled) call.compared(plan);
    return code;
}

/// PALMETTE_CHECK: an error that all ranks get, or MPI_SUCCESS. What can't be served isn't checked either.
int check(const CallArguments& arguments) {
    MPI_Comm comm = arguments.comm;
    Refusal refusal = Refusal::no_state;
    Communicator* state = Process::instance().communicator(comm, refusal);
    if (!state) return MPI_SUCCESS;
    // A tag of blocking operations: none is under way.
    const int code = check_call(checked_call({state->rank(), state->size()}, arguments), comm, state->hidden(), 0);
    if (code != MPI_SUCCESS) PMPI_Comm_call_errhandler(comm, code);
    return code;
}

}  // namespace

std::optional<int> serve(const CallArguments& arguments) {
    if (Process::instance().settings().check)
        if (const int code = check(arguments); code != MPI_SUCCESS) return code;
    Call call(arguments.function, arguments.comm, arguments.blocking);
    if (!call.open() || !prepare(call, kept, arguments)) return std::nullopt;
    if (Comparison* comparison = kept.plan->comparison;
        comparison && comparison->due(kept.send.total() + kept.recv.total())) [[unlikely]] {
        if (kept.plan->key.comparing == Comparing::beside) return run_and_compare(call, *comparison);
        if (comparison->turn() == Comparison::Turn::mpi) {
            call.refuse(Refusal::compared);
            measured_next = kept.plan;
            return std::nullopt;
        }
        int code = MPI_SUCCESS;
        before_blocking(arguments.comm);
        if (comparison->time([&call] { return run_delayed(call); }, code)) call.compared(*kept.plan);
        return code;
    }
    return call.run(kept);
}

CachedPlan* take_measured() {
    CachedPlan* plan = measured_next;
    if (plan) [[unlikely]]
        measured_next = nullptr;
    return plan;
}

void compared(MPI_Comm comm, CachedPlan& plan) {
    Call call(plan.key.function, comm);
    if (call.open()) call.compared(plan);
}

}  // namespace palmette::runtime
