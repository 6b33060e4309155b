#include "palmette/runtime/ways/prepare.hpp"

#include <algorithm>

#include "palmette/collectives/exchanges/network_share.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/runtime/transport/simulated_services.hpp"
#include "palmette/runtime/ways/lengths.hpp"
#include "palmette/runtime/ways/network.hpp"

namespace palmette::runtime {
namespace {

using plan::Collective;

std::unique_ptr<Way> way_of_lengths(Communicator& state, const CachedPlan& plan) {
    const select::Function function = plan.key.function;
    if (!plan.route.relays || !select::sizes_unknown(function)) return std::make_unique<Planned>();
    // Only repeated counts have a known block length.
    if (plan.key.block_bytes >= 0) return std::make_unique<LengthsRepeat>(*repeated_counts(state, function));
    return std::make_unique<LengthsFirst>();
}

/// The plan's program for blocks of so many bytes.
execute::BoundProgram bound_for(Communicator& state, const CachedPlan& plan, std::int64_t bytes,
                                const select::Spec& spec) {
    const collectives::Algorithm& row = collectives::algorithm_named(plan.collective(), spec.name);
    plan::Request part = plan.route.request;
    part.block_bytes = bytes;
    execute::Layout layout;
    layout.uniform_bytes = bytes;
    layout.stride = plan.route.request.block_bytes;
    layout.element_bytes = part.element_bytes;
    layout.by_address_from = plan.route.single_copy_from;
    layout.transports = &state.executor().transports();
#if defined(PALMETTE_ABI_SMPI)
    const plan::Program program = simulated_program(row, *plan.route.job, plan::Rank{state.rank()}, part, spec);
#else
    const plan::Program program = row.make(*plan.route.job, plan::Rank{state.rank()}, part, spec);
#endif
    execute::BoundProgram bound = execute::bind(plan.collective(), program, *plan.route.job, layout);
    bound.keeps = collectives::in_network_keeps(part, spec);
    if (simulated_services == 0) execute::add_agreement(bound, plan.route.job->size(), MpiExecutor::aggregation_index);
    return bound;
}

void bind_uniform(Communicator& state, CachedPlan& plan) {
    const plan::Request& request = plan.route.request;
    const select::Spec& spec = *plan.route.spec;
    const collectives::Algorithm& row = collectives::algorithm_named(request.collective, spec.name);
    const std::int64_t ring = state.ring_bytes();
    const bool alone = row.node_memory == collectives::NodeMemory::always;
    // A leader exposes what it forwards for its whole node.
    const std::int64_t forwarded =
        request.collective == Collective::alltoall && !alone ? plan.route.job->nodes().groups.largest() : 1;
    const std::int64_t exposed =
        forwarded * select::most_exposed(request.collective, plan.route.job->size(), request.block_bytes);
    const std::int64_t target = alone ? std::min(ring / 4, spec.size("batch", 128 * 1024)) : ring / 2;
    // What is read in place needs no capacity in shared memory, whole or in chunks.
    const bool all_by_address = alone && request.block_bytes / plan.route.job->size() >= plan.route.single_copy_from;
    std::int64_t batch = 0;
    if (plan.route.shares && !all_by_address && exposed > target && request.block_bytes > 0) {
        const std::int64_t unit = std::max<std::int64_t>(request.element_bytes, 1);
        const auto part = static_cast<std::int64_t>(static_cast<double>(request.block_bytes) *
                                                    static_cast<double>(target) / static_cast<double>(exposed));
        const std::int64_t even = part / unit * unit / 64 * 64;
        batch = std::max(even >= unit && even % unit == 0 ? even : part / unit * unit, unit);
    }
    if (batch == 0 || batch >= request.block_bytes) {
        plan.bound = bound_for(state, plan, request.block_bytes, spec);
        plan.bound.agreement_tag = static_cast<std::int32_t>(plan.route.tags - 1);
        return;
    }
    plan.bound = bound_for(state, plan, batch, spec);
    const std::int64_t rest = request.block_bytes % batch;
    plan.way =
        std::make_unique<InBatches>(batch, rest > 0 ? bound_for(state, plan, rest, spec) : execute::BoundProgram{});
}

}  // namespace

std::optional<MissingNetwork> prepare_way(Communicator& state, CachedPlan& plan, const Settings& settings) {
    const select::Route& route = plan.route;
    if (!select::sizes_alike(plan.key.function)) {
        const auto& row = collectives::algorithm_named(plan.collective(), route.spec->name);
        plan.program = row.make(*route.job, plan::Rank{state.rank()}, route.request, *route.spec);
        plan.way = way_of_lengths(state, plan);
        return std::nullopt;
    }
    bind_uniform(state, plan);
    if (!route.aggregates || simulated_services > 0) return std::nullopt;
    const auto [aggregation, serves] = state.kept().get<Aggregations>().find(state, plan, settings);
    if (serves || settings.forced_for(plan.key.function)) {
        plan.way = std::make_unique<InNetwork>(*aggregation, bound_for(state, plan, route.request.block_bytes,
                                                                       collectives::network_by_hosts(*route.spec)));
        return std::nullopt;
    }
    MissingNetwork missing{collectives::switches_reduce(*route.job) ? topology::Aggregator::Kind::sharp
                                                                    : topology::Aggregator::Kind::daemon,
                           aggregation->why()};
    state.kept().drop<Aggregations>();
    return missing;
}

}  // namespace palmette::runtime
