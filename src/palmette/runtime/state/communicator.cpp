#include "palmette/runtime/state/communicator.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "palmette/base/error.hpp"
#include "palmette/node/shared_single_copy.hpp"
#include "palmette/runtime/data/device_library.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/runtime/ways/prepare.hpp"

namespace palmette::runtime {
namespace {

using select::Function;

Refusal refusal_of(select::Route::LeaveReason left) {
    switch (left) {
        case select::Route::LeaveReason::precondition:
            return Refusal::precondition;
        case select::Route::LeaveReason::too_many_tags:
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
    using Finding = DeviceAgreement::Finding;
    switch (key.blocking && moves ? devices_.look(*this, key.function, settings) : Finding::may_be_served) {
        case Finding::may_be_served:
            fill(*made, settings);
            break;
        case Finding::are_the_mpis:
            made->refusal = Refusal::devices_of_the_mpi;
            break;
        case Finding::are_unknown:
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
    return node::SharedShape().ring_for(std::max(largest, 1));
}

void Communicator::set_up_sharing() {
    if (sharing_) return;
    sharing_ = share(shadow_comm_, job_, rank_, node::SharedShape());
    if (sharing_->node) executor_ = MpiExecutor(waiting_, *sharing_->node);
}

bool Communicator::ranks_read_each_other() {
    if (ranks_read_each_other_) return *ranks_read_each_other_;
    node::permit_siblings_to_read();
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
                node::can_read_process(static_cast<pid_t>(theirs[0]), theirs[1], theirs[2]);
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

void Communicator::fill(CachedPlan& plan, const Settings& settings) {
    const PlanKey& key = plan.key;
    const select::Route& route = plan.route;
    try {
        plan.route = agreed_route(key, settings);
        if (route.left != select::Route::LeaveReason::no) {
            plan.refusal = refusal_of(route.left);
            return;
        }
        if (!route.spec) return;  // nothing to move
        plan.buffered_sends = buffered_sends_of(plan, settings);
        plan.tally.comparison = comparison_of(plan, settings);
        const auto missing = prepare_way(*this, plan, settings);
        if (!missing) return;
        // They weren't there from the start: the plan is chosen as if they didn't exist.
        const PlanKey copy = key;
        plan = CachedPlan();
        plan.key = copy;
        job_.drop_aggregators(missing->kind);
        fill(plan, settings);
        plan.route.reason += base::cat("; aggregators: ", missing->why);
    } catch (const base::Error& error) {
        plan.refusal = Refusal::precondition;
        plan.route.reason = error.what();
    }
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
            const std::size_t b = blocking ? 1 : 0;
            const auto irregular = AllLeftToMpi::irregular_index(function);
            if (left.repeats) out.repeats[*irregular] = true;
            if (left.always)
                (left.repeats ? out.until_agreed[*irregular] : out.always[f][b]) =
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
