#include "palmette/runtime/serve/serve.hpp"

#include <chrono>
#include <thread>

#include "palmette/base/never_destroyed.hpp"
#include "palmette/runtime/call/prepare.hpp"
#include "palmette/runtime/serve/background.hpp"
#include "palmette/runtime/serve/checked.hpp"
#include "palmette/runtime/serve/postponed.hpp"

namespace palmette::runtime {
namespace {

/// Reuses its buffers between calls. One call at a time in a thread.
thread_local Work& thread_work = base::per_thread<Work, Call>();

/// Set where the MPI performs this thread's current call for comparison.
thread_local CachedPlan* measured_next = nullptr;

/// With the delay that tests add.
std::optional<int> run_delayed(Call& call, Work& work) {
    const double delay_s = Process::instance().settings().pretended_delay_s;
    if (delay_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(delay_s));
    return call.run(work);
}

}  // namespace

std::optional<int> serve(const CallArguments& arguments) {
    bypass_of(arguments.function).settle();
    if (has_postponed()) [[unlikely]]
        settle_postponed(&arguments);
    if (Process::instance().settings().check) [[unlikely]]
        if (const int code = check_blocking(arguments); code != MPI_SUCCESS) return code;
    Call call(arguments.function, arguments.comm, arguments.blocking);
    if (!call.find()) return std::nullopt;
    if (EarlyWay* const early = call.state().early_way()) [[unlikely]]
        if (const auto code = early->serve(arguments)) return code;
    if (call.is_left() || !prepare(call, thread_work, arguments)) return std::nullopt;
    if (thread_work.fault != MPI_SUCCESS) [[unlikely]]
        if (const auto code = postpone(call, arguments, thread_work.fault)) return code;
    const auto code = run_prepared(call, thread_work);
    if (!code) call.bypass_until_due(thread_work, arguments.op);
    return code;
}

std::optional<int> run_prepared(Call& call, Work& work) {
    Comparison* const comparison = work.plan->tally.comparison;
    if (!comparison) return call.run(work);
    if (!comparison->due(work.send.total() + work.recv.total())) [[likely]] {
        if (!comparison->mpi_meanwhile()) [[likely]]
            return call.run(work);
        call.refuse(Refusal::undecided);
        return std::nullopt;
    }
    if (comparison->turn() == Comparison::Turn::mpi) {
        call.refuse(Refusal::compared);
        measured_next = work.plan;
        return std::nullopt;
    }
    std::optional<int> done;
    int code = MPI_SUCCESS;
    before_blocking(call.comm());
    // A call that the MPI must make after all counts as failed: the pair is inconclusive.
    const auto run = [&] { return (done = run_delayed(call, work)).value_or(MPI_ERR_OTHER); };
    if (comparison->time(run, code)) call.compared(*work.plan);
    return done;
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
