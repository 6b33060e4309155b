#include "palmette/select/route.hpp"

#include <algorithm>

#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"
#include "palmette/collectives/exchanges/network_share.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/plan/space.hpp"
#include "palmette/select/by_model.hpp"
#include "palmette/select/through_aggregators.hpp"

namespace palmette::select {
namespace {

using plan::Collective;

std::string phrase_of(std::int64_t from, std::int64_t to) {
    if (from <= 1) return "up to " + base::format_size(to);
    if (to == INT64_MAX) return "from " + base::format_size(from) + " on";
    return base::cat(base::format_size(from), " to ", base::format_size(to));
}

/// Why all calls of a function are left to the MPI: the reasons of the rows that match their sizes.
std::string why_always_mpi(const Table& table, const std::vector<Table::Range>& ranges) {
    std::string out;
    for (const Table::Range& range : ranges) {
        const std::string reason = table.reason_of(range.row);
        if (out.find(reason) == std::string::npos) out += (out.empty() ? "" : "; ") + reason;
    }
    return out.empty() ? "no table row fits" : out;
}

Choice choose(const PlanKey& key, const RouteContext& context, const Job& job, const plan::Request& request) {
    if (context.forced) return {context.forced->algorithm, "forced by " + context.forced->source, Basis::demand};
    if (context.reproducible && plan::is_reduction(request.collective)) {
        // Neither measured times nor the placement may decide: the job in rank order has no topology and no costs.
        if (auto best = best_by_model(job, request))
            return {std::move(best->spec), "PALMETTE_REPRODUCIBLE: the same for any placement", Basis::demand};
        return {std::nullopt, "PALMETTE_REPRODUCIBLE: no algorithm can serve", Basis::demand};
    }
    if (sizes_unknown(key.function) && request.block_bytes >= 0) {
        // Counts repeat: chosen as MPI_Alltoall with blocks of that length.
        Choice choice = context.table.choose(Function::alltoall, job, request, context.around);
        choice.reason =
            base::cat("counts repeat, at most ", base::format_size(request.block_bytes), ": ", choice.reason);
        return choice;
    }
    const bool aggregates = may_aggregate(key, context);
    std::optional<Job> without;
    if (!aggregates && !job.aggregators().empty()) without.emplace(job).drop_aggregators();
    Choice choice = context.table.choose(key.function, without ? *without : job, request, context.around);
    // A tuned table may have a row for them.
    const bool decided = choice.algorithm && choice.algorithm->name == "in_network";
    if (aggregates && !decided)
        if (const auto better = through_aggregators(job, request))
            if (collectives::tag_limit(job, request, *better->algorithm) < context.most_tags) return *better;
    return choice;
}

const collectives::Algorithm& row_of(const plan::Request& request, const Spec& spec) {
    return collectives::algorithm_named(request.collective, spec.name);
}

bool uses_node_memory(const plan::Request& request, const Spec& spec) {
    return collectives::uses_node_memory(row_of(request, spec), spec);
}

/// All that moves goes through the memory of one node.
bool is_of_one_node(const plan::Request& request, const Spec& spec) {
    return row_of(request, spec).node_memory == collectives::NodeMemory::always;
}

/// Which blocks are read where they lie, instead of copied into shared memory.
void set_single_copy(Route& route, const PlanKey& key, const NodeMemory& memory, std::int64_t ranks) {
    if (!route.shares || !(memory.single_copy || memory.owners_always_map)) return;
    Spec& spec = *route.spec;
    const std::int64_t pays_from = memory.owners_always_map ? 1 : memory.pays_from;
    if (is_of_one_node(route.request, spec) && !spec.find("single") && key.block_bytes >= pays_from)
        spec.options.emplace_back("single", base::format_size(pays_from));
    if (const std::int64_t single = spec.size("single", 0); single > 0) route.single_copy_from = single;
    // Shorter ones must all fit in the ring.
    if (key.block_bytes < 0)
        route.single_copy_from =
            std::min({route.single_copy_from, pays_from, memory.ring_bytes / (2 * ranks) / 64 * 64});
}

void leave(Route& route, Route::LeaveReason why, std::string reason) {
    route.left = why;
    route.reason = std::move(reason);
}

void complete(Route& route, const PlanKey& key, const RouteContext& context, const Job& job) {
    const NodeMemory& memory = context.node_memory;
    plan::Request& request = route.request;
    Choice choice = choose(key, context, job, request);
    if (request.shared_memory && choice.algorithm && uses_node_memory(request, *choice.algorithm)) {
        route.needs_node_memory = !memory.is_set_up;
        // Blocks of unknown length may exceed the shared memory: those must be read in place (single copy).
        if (memory.is_set_up && key.block_bytes < 0 && !memory.single_copy) {
            request.shared_memory = false;
            choice = choose(key, context, job, request);
        }
    }
    route.reason = choice.reason;
    route.basis = choice.basis;
    if (!choice.algorithm) return leave(route, Route::LeaveReason::chosen, choice.reason);
    route.spec = std::move(choice.algorithm);
    Spec& spec = *route.spec;
    route.candidate = spec.text();
    route.shares = request.shared_memory && uses_node_memory(request, spec) &&
                   (key.block_bytes >= 0 || is_of_one_node(request, spec));
    request.shared_memory = route.shares;
    set_single_copy(route, key, memory, job.size());
    route.algorithm = spec.text();
    const collectives::Algorithm& row = row_of(request, spec);
    route.relays = row.relays;
    if (auto reason = row.refuse(job, request, spec)) return leave(route, Route::LeaveReason::precondition, *reason);
    route.aggregates = collectives::uses_aggregators(request.collective, spec);
    if (route.aggregates && !may_aggregate(key, context))
        return leave(route, Route::LeaveReason::precondition,
                     "aggregators serve blocking calls of predefined operations");
    route.tags = collectives::tag_limit(job, request, spec) + (route.aggregates ? 1 : 0);
    if (route.tags > context.most_tags) leave(route, Route::LeaveReason::too_many_tags, route.algorithm);
}

}  // namespace

std::int64_t most_exposed(Collective collective, std::int64_t ranks, std::int64_t bytes) {
    switch (collective) {
        case Collective::gather:
        case Collective::scatter:
        case Collective::allgather:
        case Collective::reduce_scatter:
        case Collective::alltoall:
            return 2 * ranks * (bytes + 64) + 4096;
        case Collective::barrier:
            return 0;
        default:
            return 2 * bytes + 8192;
    }
}

bool may_aggregate(const PlanKey& key, const RouteContext& context) {
    return !context.job.aggregators().empty() && key.function == Function::allreduce && key.blocking && !key.ordered &&
           key.known && !context.reproducible;
}

Route choose_route(const PlanKey& key, const RouteContext& context) {
    const Collective collective = collective_of(key.function);
    Route route;
    route.request = {collective, plan::Rank{key.root}, key.block_bytes, key.element_bytes, key.ordered, false};
    // Reductions that combine in the order of ranks, or must not depend on the placement, are planned for ranks in
    // their own order.
    const bool by_rank = plan::is_reduction(collective) && ((key.ordered && context.scattered) || context.reproducible);
    const Job& job = by_rank ? context.in_rank_order : context.job;
    route.job = &job;
    const bool left_by_user = context.forced && !context.forced->algorithm;
    if (key.block_bytes == 0 && collective != Collective::barrier && !left_by_user) {
        // No message either: MPI guarantees no more than a check of the arguments.
        route.algorithm = "none";
        route.reason = "nothing to move";
        route.tags = 1;
        return route;
    }
    const bool counts_repeat = sizes_unknown(key.function) && key.block_bytes >= 0;  // lengths are only similar
    bool shares = key.blocking && !by_rank && !counts_repeat && context.node_memory.usable;
    // Only uniform calls can be cut in batches.
    if (!sizes_alike(key.function) && key.block_bytes >= 0)
        shares = shares && most_exposed(collective, job.size(), key.block_bytes) <= context.node_memory.ring_bytes;
    // Blocks of unknown length are read in place by plans of one node only. Whether a node's ranks may read each
    // other's memory is known there alone, so a choice for several nodes mustn't depend on it.
    if (key.block_bytes < 0) shares = shares && job.nodes().groups.count() == 1;
    route.request.shared_memory = shares;
    try {
        complete(route, key, context, job);
    } catch (const base::Error& error) {
        leave(route, Route::LeaveReason::precondition, error.what());
    }
    return route;
}

LeftFunction left_to_mpi(Function function, const RouteContext& context) {
    LeftFunction out;
    const Job& job = context.job;
    if (context.forced) {
        if (!context.forced->algorithm) out.always = "forced by " + context.forced->source;
        return out;
    }
    // Reductions may be planned for another order of ranks, on which other rows match.
    if (plan::is_reduction(collective_of(function)) && (context.scattered || context.reproducible)) return out;
    if (is_neighbourhood(function)) return out;
    // Aggregators may serve what the table leaves to the MPI.
    if (function == Function::allreduce && context.around.blocking && !job.aggregators().empty()) return out;
    const auto ranges = context.table.mpi_ranges(function, job, context.around);
    const bool irregular = function == Function::alltoallv || function == Function::alltoallw;
    out.repeats = irregular && context.around.blocking && job.nodes().groups.count() > 1 &&
                  !context.table.always_mpi(Function::alltoall, job, context.around);
    if (context.table.always_mpi(function, job, context.around)) out.always = why_always_mpi(context.table, ranges);
    for (const auto& [from, to, row] : ranges)
        out.sizes.push_back({from, to, base::cat(phrase_of(from, to), ": ", context.table.reason_of(row))});
    return out;
}

}  // namespace palmette::select
