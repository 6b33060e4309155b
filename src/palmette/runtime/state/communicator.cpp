#include "palmette/runtime/state/communicator.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>

#include "palmette/base/error.hpp"
#include "palmette/base/text.hpp"
#include "palmette/base/units.hpp"
#include "palmette/collectives/exchanges/network_share.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/device/loaded.hpp"
#include "palmette/node/shared_single_copy.hpp"
#include "palmette/runtime/data/device_library.hpp"
#include "palmette/runtime/data/mpi_devices.hpp"
#include "palmette/runtime/data/on_device.hpp"
#include "palmette/runtime/state/bypass.hpp"
#include "palmette/runtime/state/daemon_groups.hpp"
#include "palmette/runtime/state/switch_groups.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/runtime/transport/simulated_services.hpp"
#include "palmette/select/by_model.hpp"
#include "palmette/select/through_aggregators.hpp"

namespace palmette::runtime {
namespace {

using plan::Collective;
using select::Function;

/// Upper bound of the bytes that a rank exposes in one operation, from what all ranks know.
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

std::string phrase_of(std::int64_t from, std::int64_t to) {
    if (from <= 1) return "up to " + base::format_size(to);
    if (to == INT64_MAX) return "from " + base::format_size(from) + " on";
    return base::cat(base::format_size(from), " to ", base::format_size(to));
}

/// Why all calls of a function are left to the MPI: the reasons of the rows that match their sizes.
std::string why_always_mpi(const select::Table& table, const std::vector<select::Table::Range>& ranges) {
    std::string out;
    for (const select::Table::Range& range : ranges) {
        const std::string reason = table.reason_of(range.row);
        if (out.find(reason) == std::string::npos) out += (out.empty() ? "" : "; ") + reason;
    }
    return out.empty() ? "no table row fits" : out;
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

select::Choice Communicator::choose(const CachedPlan& plan, const plan::Request& request, const Settings& settings) {
    if (const auto& forced = settings.forced[static_cast<std::size_t>(plan.key.function)])
        return {forced->algorithm, "forced by " + forced->source, select::Basis::demand};
    if (settings.reproducible && plan::is_reduction(plan.collective)) {
        // Neither measured times nor the placement may decide: the job in rank order has no topology and no costs.
        if (auto best = select::best_by_model(*plan.job, request))
            return {std::move(best->spec), "PALMETTE_REPRODUCIBLE: the same for any placement", select::Basis::demand};
        return {std::nullopt, "PALMETTE_REPRODUCIBLE: no algorithm can serve", select::Basis::demand};
    }
    const std::vector<std::string> lost = verdicts_->lost(kind_of(plan.key));
    const select::Plays plays = [&](const topology::Job& job, const plan::Request& asked,
                                    const std::vector<select::Spec>& candidates) {
        return play(kind_of(plan.key), job, asked, candidates);
    };
    const select::Surroundings around{settings.mpi,
                                      settings.oversubscribed,
                                      plan.key.blocking,
                                      may_guess(plan.key, settings),
                                      &lost,
                                      plays_ && plan.key.blocking ? &plays : nullptr};
    if (select::sizes_unknown(plan.key.function) && request.block_bytes >= 0) {
        // Counts repeat: chosen as MPI_Alltoall with blocks of that length.
        select::Choice choice = settings.table.choose(Function::alltoall, *plan.job, request, around);
        choice.reason =
            base::cat("counts repeat, at most ", base::format_size(request.block_bytes), ": ", choice.reason);
        return choice;
    }
    const bool aggregates = may_aggregate(plan, request, settings);
    std::optional<topology::Job> without;
    if (!aggregates && !plan.job->aggregators().empty()) without.emplace(*plan.job).drop_aggregators();
    select::Choice choice = settings.table.choose(plan.key.function, without ? *without : *plan.job, request, around);
    // A tuned table may have a row for them.
    const bool decided = choice.algorithm && choice.algorithm->name == "in_network";
    if (aggregates && !decided)
        if (const auto better = select::through_aggregators(*plan.job, request))
            if (collectives::tag_limit(*plan.job, request, *better->algorithm) < tags.for_blocking()) return *better;
    return choice;
}

bool Communicator::may_aggregate(const CachedPlan& plan, const plan::Request& request, const Settings& settings) const {
    return !plan.job->aggregators().empty() && plan.key.function == Function::allreduce && plan.key.blocking &&
           !request.ordered && plan.key.known && !settings.reproducible;
}

bool Communicator::aggregate(CachedPlan& plan, const select::Spec& spec, const Settings& settings) {
    const std::size_t level = collectives::network_level(*plan.job, spec);
    const auto known = std::find_if(aggregations_.begin(), aggregations_.end(),
                                    [&](const auto& one) { return one->level() == level; });
    if (known != aggregations_.end()) {
        plan.aggregation = known->get();
        return true;
    }
    std::unique_ptr<Groups> groups;
    if (collectives::switches_reduce(*plan.job))
        groups = std::make_unique<SwitchGroups>(shadow_comm_, *plan.job, rank_, level, settings.sharp);
    else
        groups = std::make_unique<DaemonGroups>(shadow_comm_, *plan.job, rank_, level, settings.aggregator_token);
    aggregations_.push_back(std::make_unique<Aggregation>(shadow_comm_, *plan.job, rank_, level, std::move(groups)));
    plan.aggregation = aggregations_.back().get();
    return plan.aggregation->join(plan.bound);
}

void Communicator::fill(CachedPlan& plan, const Settings& settings) {
    const PlanKey& key = plan.key;
    plan.collective = select::collective_of(key.function);
    // Reductions that combine in the order of ranks, or must not depend on the placement, are planned for ranks in
    // their own order.
    const bool reduces = plan::is_reduction(plan.collective);
    const bool by_rank = reduces && ((key.ordered && scattered_) || settings.reproducible);
    plan.job = by_rank ? &in_rank_order_ : &job_;
    const auto& forced = settings.forced[static_cast<std::size_t>(key.function)];
    if (key.block_bytes == 0 && plan.collective != plan::Collective::barrier && (!forced || forced->algorithm)) {
        // No message either: MPI guarantees no more than a check of the arguments.
        plan.algorithm = "none";
        plan.reason = "nothing to move";
        plan.tags = 1;
        return;
    }
    plan::Request request{plan.collective,   plan::Rank{key.root}, key.block_bytes,
                          key.element_bytes, key.ordered,          false};
    const bool lengths_only_similar = select::sizes_unknown(key.function) && key.block_bytes >= 0;  // counts repeat
    request.shared_memory = key.blocking && !by_rank && !lengths_only_similar && can_share(settings);
    // Only uniform calls can be cut in batches.
    if (!select::sizes_alike(key.function) && key.block_bytes >= 0)
        request.shared_memory =
            request.shared_memory && most_exposed(plan.collective, plan.job->size(), key.block_bytes) <= ring_bytes();
    try {
        select::Choice choice = choose(plan, request, settings);
        if (choice.basis == select::Basis::assumptions && may_probe_) {
            probe();
            choice = choose(plan, request, settings);
        }
        const auto uses_node_memory = [&](const select::Spec& spec) {
            return collectives::uses_node_memory(collectives::algorithm_named(request.collective, spec.name), spec);
        };
        if (request.shared_memory && choice.algorithm && uses_node_memory(*choice.algorithm)) {
            set_up_sharing();
            // Blocks of unknown length may exceed the shared memory: those must be read in place (single copy).
            if (!sharing_->works || (key.block_bytes < 0 && !sharing_->single_copy)) {
                request.shared_memory = false;
                choice = choose(plan, request, settings);
            }
        }
        plan.reason = choice.reason;
        if (!choice.algorithm) {
            plan.refusal = Refusal::chosen;
            return;
        }
        select::Spec& spec = *choice.algorithm;
        plan.candidate = spec.text();
        plan.on_trial = select::is_on_trial(choice.basis);
        const bool lengths_known = key.block_bytes >= 0;
        plan.shares = request.shared_memory && uses_node_memory(spec) && (lengths_known || spec.name == "shared");
        request.shared_memory = plan.shares;
        // Blocks that are copied into shared memory can't be opened on a device. Where the system lets nobody read them
        // in place, their owners copy them.
        const bool on_device = settings.device_path == Settings::DevicePath::ipc;
        if (plan.shares && (sharing_->single_copy || on_device)) {
            const std::int64_t pays_from = on_device ? 1 : sharing_->single_copy_pays_from;
            if (spec.name == "shared" && !spec.find("single") && key.block_bytes >= pays_from)
                spec.options.emplace_back("single", base::format_size(pays_from));
            if (const std::int64_t single = spec.size("single", 0); single > 0) plan.single_copy_from = single;
            // Shorter ones must all fit in the ring.
            if (!lengths_known)
                plan.single_copy_from =
                    std::min({plan.single_copy_from, pays_from, ring_bytes() / (2 * plan.job->size()) / 64 * 64});
        }
        plan.algorithm = spec.text();
        const collectives::Algorithm& row = collectives::algorithm_named(request.collective, spec.name);
        plan.relays = row.relays;
        if (const auto reason = row.refuse(*plan.job, request, spec)) {
            plan.refusal = Refusal::precondition;
            plan.reason = *reason;
            return;
        }
        const bool aggregates = collectives::uses_aggregators(request.collective, spec);
        if (aggregates && !may_aggregate(plan, request, settings)) {
            plan.refusal = Refusal::precondition;
            plan.reason = "aggregators serve blocking calls of predefined operations";
            return;
        }
        plan.tags = collectives::tag_limit(*plan.job, request, spec) + (aggregates ? 1 : 0);
        if (plan.tags > tags.for_blocking()) {
            plan.refusal = Refusal::too_many_tags;
            plan.reason = plan.algorithm;
            return;
        }
        plan.buffered_sends = buffered_sends_of(plan, settings);
        plan.comparison = comparison_of(plan, settings);
        if (select::sizes_alike(key.function)) {
            bind_uniform(plan, request, spec);
            const bool joins = aggregates && simulated_services == 0;
            if (joins && !aggregate(plan, spec, settings) && !forced) {
                // They weren't there from the start: the plan is chosen as if they didn't exist.
                const std::string why = plan.aggregation->why();
                const PlanKey copy = key;
                plan = CachedPlan();
                plan.key = copy;
                aggregations_.clear();
                job_.drop_aggregators(collectives::switches_reduce(job_) ? topology::Aggregator::Kind::sharp
                                                                         : topology::Aggregator::Kind::daemon);
                fill(plan, settings);
                plan.reason += base::cat("; aggregators: ", why);
                return;
            }
        } else {
            plan.program = row.make(*plan.job, plan::Rank{rank_}, request, spec);
        }
    } catch (const base::Error& error) {
        plan.refusal = Refusal::precondition;
        plan.reason = error.what();
    }
}

void Communicator::bind_uniform(CachedPlan& plan, const plan::Request& request, const select::Spec& spec) {
    const collectives::Algorithm& row = collectives::algorithm_named(request.collective, spec.name);
    const auto bound_for = [&](std::int64_t bytes, const select::Spec& with) {
        plan::Request part = request;
        part.block_bytes = bytes;
        Layout layout;
        layout.uniform_bytes = bytes;
        layout.stride = request.block_bytes;
        layout.element_bytes = request.element_bytes;
        layout.by_address_from = plan.single_copy_from;
        layout.transports = &executor_.transports();
#if defined(PALMETTE_ABI_SMPI)
        const plan::Program program = simulated_program(row, *plan.job, plan::Rank{rank_}, part, with);
#else
        const plan::Program program = row.make(*plan.job, plan::Rank{rank_}, part, with);
#endif
        BoundProgram bound = bind(request.collective, program, *plan.job, layout);
        if (simulated_services == 0) add_agreement(bound, plan.job->size(), MpiExecutor::aggregation_index);
        return bound;
    };
    const std::int64_t ring = ring_bytes();
    const bool alone = spec.name == "shared";
    // A leader exposes what it forwards for its whole node.
    const std::int64_t forwarded =
        request.collective == Collective::alltoall && !alone ? plan.job->nodes().groups.largest() : 1;
    const std::int64_t exposed = forwarded * most_exposed(request.collective, plan.job->size(), request.block_bytes);
    const std::int64_t target = alone ? std::min(ring / 4, spec.size("batch", 128 * 1024)) : ring / 2;
    // What is read in place needs no capacity in shared memory, whole or in chunks.
    const bool all_by_address = alone && request.block_bytes / plan.job->size() >= plan.single_copy_from;
    if (plan.shares && !all_by_address && exposed > target && request.block_bytes > 0) {
        const std::int64_t unit = std::max<std::int64_t>(request.element_bytes, 1);
        const auto part = static_cast<std::int64_t>(static_cast<double>(request.block_bytes) *
                                                    static_cast<double>(target) / static_cast<double>(exposed));
        const std::int64_t even = part / unit * unit / 64 * 64;
        plan.batch_bytes = std::max(even >= unit && even % unit == 0 ? even : part / unit * unit, unit);
        if (plan.batch_bytes >= request.block_bytes) plan.batch_bytes = 0;
    }
    if (plan.batch_bytes == 0) {
        plan.bound = bound_for(request.block_bytes, spec);
        plan.bound.agreement_tag = static_cast<std::int32_t>(plan.tags - 1);
        if (plan.bound.channels > 0)
            plan.by_hosts = bound_for(request.block_bytes, collectives::network_by_hosts(spec));
        return;
    }
    plan.bound = bound_for(plan.batch_bytes, spec);
    if (const std::int64_t rest = request.block_bytes % plan.batch_bytes; rest > 0) plan.tail = bound_for(rest, spec);
}

Communicator::AllLeftToMpi Communicator::left_to_mpi_on(const topology::Job& job, const Settings& settings,
                                                        Report& report) {
    AllLeftToMpi out;
    const bool scattered = select::is_scattered(job);
    for (std::size_t f = 0; f < select::all_function_count; ++f)
        for (const bool blocking : {false, true}) {
            const auto function = static_cast<Function>(f);
            const auto& forced = settings.forced[f];
            // Reductions may be planned for another order of ranks, on which other rows match.
            if (!forced && plan::is_reduction(select::collective_of(function)) && (scattered || settings.reproducible))
                continue;
            const select::Surroundings around{settings.mpi, settings.oversubscribed, blocking, blocking};
            const std::size_t b = blocking ? 1 : 0;
            if (forced) {
                if (!forced->algorithm)
                    out.always[f][b] = &report.refused_row(function, Refusal::chosen, "forced by " + forced->source);
                continue;
            }
            if (select::is_neighbourhood(function)) continue;
            // Aggregators may serve what the table leaves to the MPI.
            if (function == Function::allreduce && blocking && !job.aggregators().empty()) continue;
            const auto ranges = settings.table.mpi_ranges(function, job, around);
            const std::size_t irregular = irregular_index(function);
            const bool repeats = blocking && irregular < out.repeats.size() && job.nodes().groups.count() > 1 &&
                                 !settings.table.always_mpi(Function::alltoall, job, around);
            if (repeats) out.repeats[irregular] = true;
            if (settings.table.always_mpi(function, job, around))
                (repeats ? out.until_agreed[irregular] : out.always[f][b]) =
                    &report.refused_row(function, Refusal::chosen, why_always_mpi(settings.table, ranges));
            std::size_t next = 0;
            for (const auto& [from, to, row] : ranges) {
                if (next == out.sizes[f][b].size()) break;
                const std::string why = base::cat(phrase_of(from, to), ": ", settings.table.reason_of(row));
                out.sizes[f][b][next++] = {from, to, &report.refused_row(function, Refusal::chosen, why)};
            }
        }
    return out;
}

}  // namespace palmette::runtime
