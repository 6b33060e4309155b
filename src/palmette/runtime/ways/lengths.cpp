#include "palmette/runtime/ways/lengths.hpp"

#include <utility>

#include "palmette/runtime/lengths/relayed_counts.hpp"
#include "palmette/runtime/state/work.hpp"

namespace palmette::runtime {

int LengthsFirst::bind(Work& call) {
    execute::Layout layout = layout_of(call);
    RelayedCounts relayed;
    if (const int error = exchange_counts(call, relayed)) return error;
    relayed.add_own(call);
    layout.relayed_counts = &relayed.sorted();
    bind_to(call, layout);
    return MPI_SUCCESS;
}

int LengthsRepeat::bind(Work& call) {
    const execute::Layout layout = layout_of(call);
    RememberedLengths& known = repeated_.remembered();
    remembered_ = known.armed();
    if (!remembered_) {
        RelayedCounts relayed;
        bool expected = true;
        if (const int error = exchange_counts(call, relayed, &expected)) return error;
        if (!known.arm(call, layout, std::move(relayed), expected)) {
            repeated_.set_changed();
            call.leave_to_mpi(Refusal::lengths_not_remembered);
            return MPI_SUCCESS;
        }
    }
    counts_changed_ = !known.are_those_of(call);
    if (!counts_changed_)
        call.use(known.bound_for(call, layout));
    else
        call.use(known.bound_to_discard(call, layout));
    return MPI_SUCCESS;
}

int LengthsRepeat::run(Work& call, MpiExecutor& executor) {
    return remembered_ ? run_remembered(call, executor) : Planned::run(call, executor);
}

int LengthsRepeat::run_remembered(Work& call, MpiExecutor& executor) {
    execute::Environment environment = call.environment(executor);
    environment.counts_changed = &counts_changed_;
    if (counts_changed_) {
        const std::int64_t bytes = repeated_.remembered().discarded_bytes();
        environment.bases.send = environment.bases.recv = call.scratch(static_cast<std::size_t>(bytes));
        environment.data = nullptr;
    }
    executor.prepare(call.bound());
    const int error = executor.run(call.bound(), environment);
    if (error || !counts_changed_) return error;
    repeated_.set_changed();
    call.leave_to_mpi(Refusal::counts_changed);
    return call.restore_input();
}

}  // namespace palmette::runtime
