#include "palmette/runtime/state/communicator.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>

#include "palmette/base/error.hpp"
#include "palmette/collectives/exchanges/network_share.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/device/loaded.hpp"
#include "palmette/node/shared_single_copy.hpp"
#include "palmette/runtime/data/device_library.hpp"
#include "palmette/runtime/data/mpi_devices.hpp"
#include "palmette/runtime/data/on_device.hpp"
#include "palmette/runtime/network/daemon_groups.hpp"
#include "palmette/runtime/network/switch_groups.hpp"
#include "palmette/runtime/state/bypass.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/runtime/transport/simulated_services.hpp"

namespace palmette::runtime {
namespace {

using plan::Collective;
using select::Function;

Refusal refusal_of(select::Route::Left left) {
    switch (left) {
        case select::Route::Left::precondition:
            return Refusal::precondition;
        case select::Route::Left::too_many_tags:
            return Refusal::too_many_tags;
        default:
            return Refusal::chosen;
    }
}

}  // namespace

Communicator::Communicator(MPI_Comm shadow_comm, topology::Job job, int rank, int tag_limit, Waiting waiting)
    : tags(tag_limit),
      job_(std::move(job)),
      in_rank_order_(job_.in_rank_order()),
      scattered_(select::is_scattered(job_)),
      shadow_comm_(shadow_comm),
      rank_(rank),
      leads_(rank == 0),
      waiting_(waiting),
      executor_(waiting) {}

CachedPlan& Communicator::find_or_make(const PlanKey& key, const Settings& settings) {
    for (const auto& plan : plans_)
        if (plan->key == key) return *plan;
    auto made = std::make_unique<CachedPlan>();
    made->key = key;
    // Calls without data don't synchronise.
    const bool moves = key.block_bytes != 0 || key.function == Function::barrier;
    auto devices = Devices::may_be_served;
    if (key.blocking && moves && settings.device_check && is_due_for_device_check())
        devices = look_at_devices(key.function, settings);
    switch (devices) {
        case Devices::may_be_served:
            fill(*made, settings);
            break;
        case Devices::are_the_mpis:
            made->refusal = Refusal::devices_of_the_mpi;
            break;
        case Devices::are_unknown:
            unusable = made->refusal = Refusal::device_memory;
            warn_of_device_memory(rank_);
    }
    if (plans_.size() >= most_plans)
        for (std::size_t tried = 0; tried < plans_.size(); ++tried) {
            next_victim_ = (next_victim_ + 1) % plans_.size();
            auto& victim = plans_[next_victim_];
            if (victim->users > 0) continue;
            std::replace(recent_.begin(), recent_.end(), victim.get(), static_cast<CachedPlan*>(nullptr));
            victim = std::move(made);
            return *victim;
        }
    plans_.push_back(std::move(made));
    return *plans_.back();
}

bool Communicator::is_due_for_device_check() {
    // All ranks make the same plans. The checks get rarer, so that a program whose sizes never repeat doesn't pay for
    // an agreement each time, unless a rank has a driver.
    const std::uint64_t made = ++blocking_plans_made_;
    return drivers_.any || std::has_single_bit(made) || made % 1024 == 0;
}

bool Communicator::is_of_nccl(select::Function function) {
    switch (function) {
        case Function::allreduce:
        case Function::reduce:
        case Function::bcast:
        case Function::allgather:
        case Function::reduce_scatter:
        case Function::reduce_scatter_block:
        case Function::alltoall:
            return true;
        default:
            return false;
    }
}

void Communicator::first_left(select::Function function, const Settings& settings) {
    if (!is_of_nccl(function) || !settings.device_check || !is_due_for_device_check()) return;
    if (look_at_devices(function, settings) != Devices::are_unknown) return;
    unusable = Refusal::device_memory;
    warn_of_device_memory(rank_);
}

Communicator::Devices Communicator::look_at_devices(select::Function function, const Settings& settings) {
#if defined(PALMETTE_ABI_SMPI)
    static_cast<void>(function), static_cast<void>(settings);
    return Devices::may_be_served;
#else
    using Path = Settings::DevicePath;
    const bool has_nccl =
        settings.device_path == Path::nccl && !nccl_ && device::driver_loaded() && device::find_nccl(settings.nccl);
    // A GPU's driver may have been loaded since the state was made. New kinds of calls have a set-up cost anyway, and
    // those on device data mostly are new.
    const auto all = all_true(shadow_comm_, {!device_library_is_loaded(), has_nccl, !device::driver_loaded(),
                                             mpi_takes_devices(), !OnDevice::current()});
    if (!all) return Devices::are_unknown;
    const auto [known, all_have_nccl, none_has_driver, mpi_takes_all, none_on_device] = *all;
    drivers_ = {!none_has_driver, mpi_takes_all};
    if (all_have_nccl) {
        nccl_ =
            std::make_unique<NcclRanks>(shadow_comm_, rank_, size(), 1, std::chrono::seconds(settings.nccl_timeout_s));
        // Calls on it have to be looked at.
        close_bypasses();
    }
    if (!known) return Devices::are_unknown;
    return !none_on_device && devices_are_the_mpis(function, settings) ? Devices::are_the_mpis : Devices::may_be_served;
#endif
}

bool Communicator::can_share(const Settings& settings) const {
    const topology::Partition& nodes = job_.nodes().groups;
    const bool any = nodes.count() < nodes.size();
    return settings.shared && any && (!sharing_ || sharing_->works);
}

std::int64_t Communicator::ring_bytes() const {
    const topology::Partition& nodes = job_.nodes().groups;
    std::int32_t largest = nodes.even_size();
    for (std::int32_t g = 0; nodes.even_size() == 0 && g < nodes.count(); ++g)
        largest = std::max(largest, nodes.size_of(g));
    return SharedShape().ring_for(std::max(largest, 1));
}

void Communicator::set_up_sharing() {
    if (sharing_) return;
    sharing_ = share(shadow_comm_, job_, rank_, SharedShape());
    if (sharing_->node) executor_ = MpiExecutor(waiting_, *sharing_->node);
}

bool Communicator::ranks_read_each_other() {
    if (ranks_read_each_other_) return *ranks_read_each_other_;
    permit_siblings_to_read();
    const topology::Partition& nodes = job_.nodes().groups;
    const std::int32_t position = job_.position_of(topology::Rank{rank_}).value;
    const std::int32_t group = nodes.group_of(position), first = nodes.first(group), size = nodes.size_of(group);
    const auto neighbor = [&](std::int32_t distance) {
        return job_.rank_at({first + (position - first + distance) % size}).value;
    };
    // Each rank tries to read from its predecessor.
    std::uint64_t word = 0x70616c6d65747465U ^ static_cast<std::uint64_t>(rank_);
    const std::array<std::uint64_t, 3> mine{static_cast<std::uint64_t>(getpid()),
                                            reinterpret_cast<std::uint64_t>(&word), word};
    std::array<std::uint64_t, 3> theirs = mine;
    bool works = true;
    if (size > 1)
        works = PMPI_Sendrecv(mine.data(), sizeof mine, MPI_BYTE, neighbor(1), 0, theirs.data(), sizeof theirs,
                              MPI_BYTE, neighbor(size - 1), 0, shadow_comm_, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
                can_read_process(static_cast<pid_t>(theirs[0]), theirs[1], theirs[2]);
    // The word's lifetime must extend until all ranks have read.
    ranks_read_each_other_ = all_true(shadow_comm_, works).value_or(false);
    return *ranks_read_each_other_;
}

select::Route Communicator::choose_route(const PlanKey& key, const Settings& settings) {
    const CallKind kind = kind_of(key);
    const std::vector<std::string> lost = verdicts_->lost(kind);
    const select::Plays plays = [this, &kind](const topology::Job& job, const plan::Request& asked,
                                              const std::vector<select::Spec>& candidates) {
        return play(kind, job, asked, candidates);
    };
    select::NodeMemory memory{.usable = can_share(settings), .ring_bytes = ring_bytes()};
    if (sharing_) {
        memory.is_set_up = true;
        memory.single_copy = sharing_->single_copy;
        memory.pays_from = sharing_->single_copy_pays_from;
        memory.owners_always_map = settings.device_path == Settings::DevicePath::ipc;
    }
    return select::choose_route(
        key, {.table = settings.table,
              .job = job_,
              .in_rank_order = in_rank_order_,
              .scattered = scattered_,
              .forced = settings.forced_for(key.function),
              .reproducible = settings.reproducible,
              .most_tags = tags.for_blocking(),
              .node_memory = memory,
              .around = {settings.mpi, settings.oversubscribed, key.blocking, may_guess(key, settings), &lost,
                         plays_ && key.blocking ? &plays : nullptr}});
}

select::Route Communicator::agreed_route(const PlanKey& key, const Settings& settings) {
    select::Route route = choose_route(key, settings);
    if (route.basis == select::Basis::assumptions && may_probe_) {
        probe();
        route = choose_route(key, settings);
    }
    if (route.needs_node_memory) {
        set_up_sharing();
        route = choose_route(key, settings);
    }
    return route;
}

bool Communicator::aggregate(CachedPlan& plan, const select::Spec& spec, const Settings& settings) {
    const topology::Job& job = *plan.route.job;
    const std::size_t level = collectives::network_level(job, spec);
    const auto known = std::find_if(aggregations_.begin(), aggregations_.end(),
                                    [&](const auto& one) { return one->level() == level; });
    if (known != aggregations_.end()) {
        plan.aggregates.with = known->get();
        return true;
    }
    std::unique_ptr<Groups> groups;
    if (collectives::switches_reduce(job))
        groups = std::make_unique<SwitchGroups>(shadow_comm_, job, rank_, level, settings.sharp);
    else
        groups = std::make_unique<DaemonGroups>(shadow_comm_, job, rank_, level, settings.aggregator_token);
    aggregations_.push_back(std::make_unique<Aggregation>(shadow_comm_, job, rank_, level, std::move(groups)));
    plan.aggregates.with = aggregations_.back().get();
    return plan.aggregates.with->join(plan.bound);
}

void Communicator::fill(CachedPlan& plan, const Settings& settings) {
    const PlanKey& key = plan.key;
    const select::Route& route = plan.route;
    try {
        plan.route = agreed_route(key, settings);
        if (route.left != select::Route::Left::no) {
            plan.refusal = refusal_of(route.left);
            return;
        }
        if (!route.spec) return;  // nothing to move
        plan.buffered_sends = buffered_sends_of(plan, settings);
        plan.tally.comparison = comparison_of(plan, settings);
        if (!select::sizes_alike(key.function)) {
            const auto& row = collectives::algorithm_named(route.request.collective, route.spec->name);
            plan.program = row.make(*route.job, plan::Rank{rank_}, route.request, *route.spec);
            return;
        }
        bind_uniform(plan);
        const bool joins = route.aggregates && simulated_services == 0;
        if (!joins || aggregate(plan, *route.spec, settings) || settings.forced_for(key.function)) return;
        // They weren't there from the start: the plan is chosen as if they didn't exist.
        const std::string why = plan.aggregates.with->why();
        const PlanKey copy = key;
        plan = CachedPlan();
        plan.key = copy;
        aggregations_.clear();
        job_.drop_aggregators(collectives::switches_reduce(job_) ? topology::Aggregator::Kind::sharp
                                                                 : topology::Aggregator::Kind::daemon);
        fill(plan, settings);
        plan.route.reason += base::cat("; aggregators: ", why);
    } catch (const base::Error& error) {
        plan.refusal = Refusal::precondition;
        plan.route.reason = error.what();
    }
}

void Communicator::bind_uniform(CachedPlan& plan) {
    const plan::Request& request = plan.route.request;
    const select::Spec& spec = *plan.route.spec;
    const collectives::Algorithm& row = collectives::algorithm_named(request.collective, spec.name);
    const auto bound_for = [&](std::int64_t bytes, const select::Spec& with) {
        plan::Request part = request;
        part.block_bytes = bytes;
        Layout layout;
        layout.uniform_bytes = bytes;
        layout.stride = request.block_bytes;
        layout.element_bytes = request.element_bytes;
        layout.by_address_from = plan.route.single_copy_from;
        layout.transports = &executor_.transports();
#if defined(PALMETTE_ABI_SMPI)
        const plan::Program program = simulated_program(row, *plan.route.job, plan::Rank{rank_}, part, with);
#else
        const plan::Program program = row.make(*plan.route.job, plan::Rank{rank_}, part, with);
#endif
        BoundProgram bound = bind(request.collective, program, *plan.route.job, layout);
        if (simulated_services == 0) add_agreement(bound, plan.route.job->size(), MpiExecutor::aggregation_index);
        return bound;
    };
    const std::int64_t ring = ring_bytes();
    const bool alone = row.node_memory == collectives::NodeMemory::always;
    // A leader exposes what it forwards for its whole node.
    const std::int64_t forwarded =
        request.collective == Collective::alltoall && !alone ? plan.route.job->nodes().groups.largest() : 1;
    const std::int64_t exposed =
        forwarded * select::most_exposed(request.collective, plan.route.job->size(), request.block_bytes);
    const std::int64_t target = alone ? std::min(ring / 4, spec.size("batch", 128 * 1024)) : ring / 2;
    // What is read in place needs no capacity in shared memory, whole or in chunks.
    const bool all_by_address = alone && request.block_bytes / plan.route.job->size() >= plan.route.single_copy_from;
    if (plan.route.shares && !all_by_address && exposed > target && request.block_bytes > 0) {
        const std::int64_t unit = std::max<std::int64_t>(request.element_bytes, 1);
        const auto part = static_cast<std::int64_t>(static_cast<double>(request.block_bytes) *
                                                    static_cast<double>(target) / static_cast<double>(exposed));
        const std::int64_t even = part / unit * unit / 64 * 64;
        plan.batches.bytes = std::max(even >= unit && even % unit == 0 ? even : part / unit * unit, unit);
        if (plan.batches.bytes >= request.block_bytes) plan.batches.bytes = 0;
    }
    if (plan.batches.bytes == 0) {
        plan.bound = bound_for(request.block_bytes, spec);
        plan.bound.agreement_tag = static_cast<std::int32_t>(plan.route.tags - 1);
        if (plan.bound.channels > 0)
            plan.aggregates.by_hosts = bound_for(request.block_bytes, collectives::network_by_hosts(spec));
        return;
    }
    plan.bound = bound_for(plan.batches.bytes, spec);
    if (const std::int64_t rest = request.block_bytes % plan.batches.bytes; rest > 0)
        plan.batches.tail = bound_for(rest, spec);
}

Communicator::AllLeftToMpi Communicator::left_to_mpi_on(const topology::Job& job, const Settings& settings,
                                                        Report& report) {
    AllLeftToMpi out;
    const bool scattered = select::is_scattered(job);
    for (std::size_t f = 0; f < select::all_function_count; ++f)
        for (const bool blocking : {false, true}) {
            const auto function = static_cast<Function>(f);
            const select::RouteContext context{.table = settings.table,
                                               .job = job,
                                               .in_rank_order = job,
                                               .scattered = scattered,
                                               .forced = settings.forced_for(function),
                                               .reproducible = settings.reproducible,
                                               .around = {settings.mpi, settings.oversubscribed, blocking, blocking}};
            const select::LeftFunction left = select::left_to_mpi(function, context);
            const std::size_t b = blocking ? 1 : 0, irregular = irregular_index(function);
            if (left.repeats) out.repeats[irregular] = true;
            if (left.always)
                (left.repeats ? out.until_agreed[irregular] : out.always[f][b]) =
                    &report.refused_row(function, Refusal::chosen, *left.always);
            for (std::size_t i = 0; i < std::min(left.sizes.size(), out.sizes[f][b].size()); ++i) {
                const select::LeftSizes& sizes = left.sizes[i];
                out.sizes[f][b][i] = {sizes.from, sizes.to,
                                      &report.refused_row(function, Refusal::chosen, sizes.reason)};
            }
        }
    return out;
}

}  // namespace palmette::runtime
