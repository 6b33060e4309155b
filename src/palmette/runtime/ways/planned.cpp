#include "palmette/runtime/lengths/relayed_counts.hpp"
#include "palmette/runtime/state/work.hpp"
#include "palmette/runtime/ways/way.hpp"

namespace palmette::runtime {

Way::~Way() = default;

Way::Runs Way::runs(const CachedPlan& plan) const { return {.program = &plan.bound}; }

execute::Layout Planned::layout_of(const Work& call) {
    execute::Layout layout;
    layout.element_bytes = call.plan->key.element_bytes;
    layout.send = call.send.ranks();
    layout.recv = call.recv.ranks();
    layout.by_address_from = call.plan->route.single_copy_from;
    layout.transports = &call.state->executor().transports();
    return layout;
}

int Planned::bind(Work& call) {
    execute::Layout layout = layout_of(call);
    RelayedCounts own;
    if (select::sizes_unknown(call.plan->key.function)) {
        own.add_own(call);
        layout.relayed_counts = &own.sorted();
    }
    bind_to(call, layout);
    return MPI_SUCCESS;
}

void Planned::bind_to(Work& call, const execute::Layout& layout) {
    const CachedPlan& plan = *call.plan;
    const auto bound = [&] { return execute::bind(plan.collective(), plan.program, *plan.route.job, layout); };
    // The program of a nonblocking call must not change.
    if (!plan.key.blocking) return call.use(bound());
    if (!last_.holds(layout, call.state->size())) {
        last_.program = bound();
        last_.keep();
    }
    call.use(last_.program);
}

}  // namespace palmette::runtime
