#include "palmette/runtime/ways/network.hpp"

#include <algorithm>

#include "palmette/collectives/exchanges/network_share.hpp"
#include "palmette/runtime/network/daemon_groups.hpp"
#include "palmette/runtime/network/switch_groups.hpp"
#include "palmette/runtime/state/process.hpp"
#include "palmette/runtime/state/work.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {

namespace {

void count_by_hosts(const std::string& why, std::int64_t operations) {
    Process::instance().report().by_hosts_row(why).of_first.add(operations);
}

}  // namespace

std::pair<Aggregation*, bool> Aggregations::find(Communicator& state, const CachedPlan& plan,
                                                 const Settings& settings) {
    const topology::Job& job = *plan.route.job;
    const MPI_Comm comm = state.shadow_comm();
    const int rank = state.rank();
    const std::size_t level = collectives::network_level(job, *plan.route.spec);
    // Daemons have one member a group for short vectors, and more for others.
    const bool only_short = plan.bound.keeps && !collectives::switches_reduce(job);
    const auto known = std::ranges::find_if(
        all_, [&](const auto& one) { return one->level() == level && one->only_short() == only_short; });
    if (known != all_.end()) return {known->get(), true};
    std::unique_ptr<Groups> groups;
    if (collectives::switches_reduce(job))
        groups = std::make_unique<SwitchGroups>(comm, job, rank, level, settings.sharp);
    else
        groups = std::make_unique<DaemonGroups>(comm, job, rank, level, settings.aggregator_token);
    all_.push_back(
        std::make_unique<Aggregation>(comm, job, rank, level, only_short, std::move(groups), count_by_hosts));
    Aggregation& made = *all_.back();
    return {&made, made.join(plan.bound)};
}

int InNetwork::run_kept(Work& call, MpiExecutor& executor, const execute::Environment& environment) {
    const execute::BoundProgram& program = call.plan->bound;
    const Operation::KernelKind known = *call.operation->known();
    KeptMembers& kept = *aggregation_.kept();
    executor.aggregation().use(&aggregation_.channels(), &aggregation_.tree(), {known.op, known.element},
                               has_outstanding(), kept.group());
    executor.prepare(program);
    const int error = executor.run(program, environment);
    executor.aggregation().use(nullptr, nullptr, {});
    kept.tally();
    return error;
}

int InNetwork::run(Work& call, MpiExecutor& executor) {
    const execute::BoundProgram& program = call.plan->bound;
    execute::Environment environment = call.environment(executor);
    if (aggregation_.serves(*call.operation, program)) {
        if (program.keeps && aggregation_.kept()) return run_kept(call, executor, environment);
        // Input that lies in the output's place is kept until all ranks have the result.
        if (environment.bases.send == environment.bases.recv)
            environment.bases.send =
                call.scratch_copy(environment.bases.send, static_cast<std::size_t>(call.plan->key.block_bytes));
        const Operation::KernelKind known = *call.operation->known();
        executor.aggregation().use(&aggregation_.channels(), &aggregation_.tree(), {known.op, known.element},
                                   has_outstanding());
        executor.prepare(program);
        const int error = executor.run(program, environment);
        const bool all_have_it = error == MPI_SUCCESS && aggregation_.succeeded(executor.aggregation());
        executor.aggregation().use(nullptr, nullptr, {});
        if (error != MPI_SUCCESS || all_have_it) return error;
    }
    Process::instance().report().by_hosts_row(aggregation_.why()).add(call.state->rank() == 0);
    executor.prepare(by_hosts_);
    return executor.run(by_hosts_, environment);
}

}  // namespace palmette::runtime
