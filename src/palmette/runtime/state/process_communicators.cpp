// Process: the states of communicators, which hang on them as attributes.
#include <algorithm>
#include <vector>

#include "palmette/base/error.hpp"
#include "palmette/base/text.hpp"
#include "palmette/device/loaded.hpp"
#include "palmette/runtime/data/device_library.hpp"
#include "palmette/runtime/data/mpi_devices.hpp"
#include "palmette/runtime/start/discovery.hpp"
#include "palmette/runtime/state/bypass.hpp"
#include "palmette/runtime/state/process.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/runtime/transport/simulated_services.hpp"

namespace palmette::runtime {
namespace {

/// The ranks in MPI_COMM_WORLD of a communicator's ranks; empty when one of them is not in this process's world.
std::vector<topology::Rank> ranks_in_world(MPI_Comm comm) {
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group world = MPI_GROUP_NULL;
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    int size = 0;
    PMPI_Group_size(group, &size);
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::vector<int> in_world(ranks.size());
    for (int i = 0; i < size; ++i) ranks[static_cast<std::size_t>(i)] = i;
    PMPI_Group_translate_ranks(group, size, ranks.data(), world, in_world.data());
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    std::vector<topology::Rank> out;
    for (const int rank : in_world) {
        if (rank == MPI_UNDEFINED) return {};
        out.push_back({rank});
    }
    return out;
}

}  // namespace

int Process::forget(MPI_Comm, int, void* attribute, void*) {
    const std::unique_ptr<Attached> attached(static_cast<Attached*>(attribute));
    Process& process = instance();
    for (std::unique_ptr<Communicator>* state : {&attached->state, &attached->for_compositions})
        if (*state) process.free_with_users(*state->release());
    return MPI_SUCCESS;
}

void Process::free_with_users(Communicator& state) {
    state.freed.store(true, std::memory_order_release);
    generation_.fetch_add(1, std::memory_order_acq_rel);
    close_bypasses();
    // What is under way on the shadow communicator goes on. No lock: some MPIs come here while they progress, with all
    // that the caller has locked.
    release_user(state);
}

void Process::leave_ways(MPI_Comm comm) {
    Attached* attached = nullptr;
    int found = 0;
    if (comm != MPI_COMM_NULL) PMPI_Comm_get_attr(comm, keyval_, &attached, &found);
    if (found != 0 && attached->state) attached->state->kept().leave();
}

void Process::release_user(Communicator& state) {
    if (state.users.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    // Inside of MPI_Finalize the MPI takes its communicators down itself; and it may have come without palmette.
    int finalized = 0;
    PMPI_Finalized(&finalized);
    if (MPI_Comm shadow_comm = state.shadow_comm();
        shadow_comm != MPI_COMM_NULL && shadow_comm != apart_ && !finished_ && finalized == 0) {
        PMPI_Comm_free(&shadow_comm);
        --shadow_count_;
    }
    delete &state;
}

Process::Attached* Process::attached_to(MPI_Comm comm) const {
    Attached* attached = nullptr;
    int found = 0;
    PMPI_Comm_get_attr(comm, keyval_, &attached, &found);
    if (found) return attached;
    auto made = std::make_unique<Attached>();
    if (PMPI_Comm_set_attr(comm, keyval_, made.get()) != MPI_SUCCESS) return nullptr;
    return made.release();
}

std::optional<Refusal> Process::never_served(MPI_Comm comm) const {
    int inter = 0;
    int size = 0;
    PMPI_Comm_test_inter(comm, &inter);
    PMPI_Comm_size(comm, &size);
    if (inter) return Refusal::intercommunicator;
    if (size < 2) return Refusal::one_rank;
    // Where there are two worlds in it, each rank sees one that isn't its own.
    if (world_ && comm != MPI_COMM_WORLD && ranks_in_world(comm).empty()) return Refusal::other_jobs;
    return std::nullopt;
}

Communicator* Process::find_communicator(MPI_Comm comm, Refusal& refusal, Making making) {
    if (off_) {
        refusal = *off_;
        return nullptr;
    }
    refusal = Refusal::erroneous_arguments;
    // The MPI raises its error itself where the handle is none.
    if (int inter = 0; comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS) return nullptr;
    refusal = Refusal::no_state;
    Attached* attached = attached_to(comm);
    if (!attached) return nullptr;
    if (!attached->state && attached->calls == 0) {
        if (const auto never = never_served(comm)) {
            int rank = 0;
            PMPI_Comm_rank(comm, &rank);
            attached->state =
                std::make_unique<Communicator>(MPI_COMM_NULL, topology::Job::flat(1), 0, tag_limit_, waiting_);
            attached->state->set_leads(rank == 0);
            attached->state->unusable = never;
        }
    }
    if (!attached->state) {
        if (making != Making::never) ++attached->calls;
        const bool early = comm != MPI_COMM_WORLD && making != Making::now && attached->calls <= settings_.serve_after;
        if (early || making < Making::makes) {
            refusal = early ? Refusal::few_calls : Refusal::no_state_yet;
            return nullptr;
        }
        attached->state = make_communicator(comm);
    }
    Communicator* state = attached->state.get();
    recent_ = {comm, generation_.load(std::memory_order_acquire), state};
    if (state->unusable) refusal = *state->unusable;
    return state->unusable ? nullptr : state;
}

Communicator& Process::composing(MPI_Comm comm, const Settings& settings) {
    if (!started()) {
        start_without_world(settings);
        int* limit = nullptr;
        int found = 0;
        PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found);
        if (found) tag_limit_ = *limit;
    }
    Refusal refusal = Refusal::no_state;
    if (Communicator* state = communicator(comm, refusal, Making::now)) return *state;
    Attached* attached = attached_to(comm);
    if (!attached) base::fail("the communicator can't be used: MPI keeps no attribute on it");
    // Made by all: what one rank alone has met since must not make it choose otherwise.
    if (attached->state && attached->state->shadow_comm() != MPI_COMM_NULL) return *attached->state;
    if (!attached->for_compositions) {
        MPI_Group group = MPI_GROUP_NULL;
        MPI_Comm shadow_comm = MPI_COMM_NULL;
        PMPI_Comm_group(comm, &group);
        const int error = PMPI_Comm_create(comm, group, &shadow_comm);
        PMPI_Group_free(&group);
        if (error != MPI_SUCCESS || shadow_comm == MPI_COMM_NULL)
            base::fail("the communicator can't be used: MPI gives no other one with its ranks");
        PMPI_Comm_set_errhandler(shadow_comm, MPI_ERRORS_RETURN);
        int rank = 0;
        PMPI_Comm_rank(shadow_comm, &rank);
        attached->for_compositions = std::make_unique<Communicator>(shadow_comm, discover(shadow_comm, settings_).job,
                                                                    rank, tag_limit_, waiting_);
        ++shadow_count_;
    }
    return *attached->for_compositions;
}

MPI_Comm Process::make_shadow_comm(MPI_Comm comm) const {
    if ((comm == MPI_COMM_WORLD || simulated_services > 0) && apart_ != MPI_COMM_NULL) return apart_;
    // A duplicate would call the program's attribute callbacks; a communicator made from the group has none.
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm shadow_comm = MPI_COMM_NULL;
    PMPI_Comm_group(comm, &group);
    // MPICH 5 gives too large a group for a grid that was cut out of a communicator; then there is none that fits.
    int members = 0;
    int size = 0;
    PMPI_Group_size(group, &members);
    PMPI_Comm_size(comm, &size);
    int error = MPI_ERR_GROUP;
    // Out of the world's, so that an error comes back to us and not to the program's error handler. Threads that do so
    // at the same time could be taken for each other.
    constexpr int tag = 0;
    if (members == size)
        error = apart_ != MPI_COMM_NULL && !several_threads_ && settings_.mpi != "smpi"
                    ? PMPI_Comm_create_group(apart_, group, tag, &shadow_comm)
                    : PMPI_Comm_create(comm, group, &shadow_comm);
    PMPI_Group_free(&group);
    if (error != MPI_SUCCESS || shadow_comm == MPI_COMM_NULL) return MPI_COMM_NULL;
    PMPI_Comm_set_errhandler(shadow_comm, MPI_ERRORS_RETURN);
    return shadow_comm;
}

std::unique_ptr<Communicator> Process::make_communicator(MPI_Comm comm) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    std::optional<LateWarning> line;
    // Nobody has looked who is there.
    if (!world_)
        line.emplace(
            base::cat("rank ", rank,
                      " has waited 5 s for the others of its communicator in a collective, where they are late, or run "
                      "without palmette's library: start all ranks under `palmette run`, or none"));
    MPI_Comm shadow_comm = make_shadow_comm(comm);
    const std::shared_ptr<const Settings> forced = control_.settings();
    CommunicatorSetup settled;
    if (shadow_comm != MPI_COMM_NULL) {
        settled = settle(comm, shadow_comm, forced);
        if (!settled.place && shadow_comm != apart_)
            PMPI_Comm_free(&shadow_comm);
        else if (shadow_comm != apart_)
            ++shadow_count_;
    }
    const std::shared_ptr<const Place>& place = settled.place;
    auto state = std::make_unique<Communicator>(
        place ? shadow_comm : MPI_COMM_NULL, place ? place->job : topology::Job::flat(1), rank, tag_limit_, waiting_);
    if (place) {
        state->set_left_to_mpi(place->left);
        // A verdict of another thread could come to one rank earlier than to another one.
        if (place->verdicts && !several_threads_) state->share_verdicts(place->verdicts);
    } else {
        state->unusable = settled.unusable;
    }
    // Pretended hosts have costs that are pretended. Who wants nothing measured during the job gets the same choice,
    // and the same bits, in each run.
    if (place && comm == MPI_COMM_WORLD && settings_.compare > 0 && settings_.pretended_hosts.empty() &&
        settings_.mpi != "smpi")
        state->probe_when_needed();
    // More ranks than cores delay messages by what no simulation knows.
    if (place && comm == MPI_COMM_WORLD && !settings_.oversubscribed) state->play_candidates();
    state->devices().set(settled.drivers);
    state->keep_settings(forced);
    return state;
}

void Process::keep_costs(const ProbedCosts& costs) {
    // Another thread may be making a communicator, on one rank before this and on another one after it.
    if (several_threads_ || !world_) return;
    const std::lock_guard lock(places_mutex_);
    const topology::Job measured_on = *world_;
    apply_costs(costs, measured_on, *world_);
    for (auto& place : places_) {
        topology::Job job = world_->restricted_to(place->members);
        const Settings& settings = place->forced ? *place->forced : settings_;
        const Communicator::AllLeftToMpi left = Communicator::left_to_mpi_on(job, settings, report_);
        place =
            std::make_shared<const Place>(Place{place->members, place->forced, std::move(job), left, place->verdicts});
    }
}

std::shared_ptr<const Process::Place> Process::place_of(std::vector<topology::Rank> members,
                                                        const std::shared_ptr<const Settings>& forced) {
    const std::lock_guard lock(places_mutex_);
    const auto known = std::find_if(places_.begin(), places_.end(), [&](const auto& place) {
        return place->members == members && place->forced == forced;
    });
    if (known != places_.end()) {
        std::rotate(places_.begin(), known, known + 1);
        return places_.front();
    }
    topology::Job job = world_->restricted_to(members);
    const Communicator::AllLeftToMpi left = Communicator::left_to_mpi_on(job, forced ? *forced : settings_, report_);
    if (places_.size() == most_places) places_.pop_back();
    places_.insert(places_.begin(), std::make_shared<const Place>(Place{std::move(members), forced, std::move(job),
                                                                        left, std::make_shared<Verdicts>()}));
    return places_.front();
}

std::uint64_t Process::verdicts_digest(const std::vector<topology::Rank>& members,
                                       const std::shared_ptr<const Settings>& forced) {
    const std::lock_guard lock(places_mutex_);
    for (const auto& place : places_)
        if (place->members == members && place->forced == forced) return place->verdicts->digest();
    return 0;
}

Process::CommunicatorSetup Process::settle(MPI_Comm comm, MPI_Comm shadow_comm,
                                           const std::shared_ptr<const Settings>& forced) {
    CommunicatorSetup out;
    const Settings& settings = forced ? *forced : settings_;
    std::vector<topology::Rank> members = world_ ? ranks_in_world(comm) : std::vector<topology::Rank>();
    // Simulated services are no members, and take part on the world alone.
    if (simulated_services > 0 && world_) members.resize(static_cast<std::size_t>(world_->size()));
    Agreement mine{settings.hash, true, !members.empty(), shadow_count_ < most_shadow_comms,
                   !settings.device_check || !device_library_is_loaded()};
    mine.no_driver = !device::driver_loaded();
    // What one rank has forgotten, since it has met many other communicators meanwhile, doesn't count on any.
    if (world_ && !members.empty()) mine.verdicts_hash = verdicts_digest(members, forced);
    mine.mpi_takes = mpi_takes_devices();
    const auto agreement = agree(simulated_services > 0 ? comm : shadow_comm, mine);
    out.unusable = !agreement                     ? Refusal::no_state
                   : !agreement->settings_agree   ? Refusal::settings_differ
                   : !agreement->has_communicator ? Refusal::too_many_communicators
                   : !agreement->host_memory      ? std::optional(Refusal::device_memory)
                                                  : std::nullopt;
    if (out.unusable == Refusal::device_memory) {
        int rank = 0;
        PMPI_Comm_rank(comm, &rank);
        warn_of_device_memory(rank);
    }
    if (out.unusable) return out;
    out.drivers = {!agreement->no_driver, agreement->mpi_takes};
    try {
        if (agreement->world_known) {
            out.place = place_of(std::move(members), forced);
            if (!agreement->verdicts_agree) out.place->verdicts->clear();
            return out;
        }
        topology::Job job = discover(shadow_comm, settings).job;
        const Communicator::AllLeftToMpi left = Communicator::left_to_mpi_on(job, settings, report_);
        out.place = std::make_shared<const Place>(Place{{}, forced, std::move(job), left, nullptr});
    } catch (const base::Error& problem) {
        // The same on all ranks of the communicator.
        report_.note(problem.what());
        out.unusable = Refusal::no_state;
    }
    return out;
}

std::optional<topology::Job> Process::job_of(MPI_Comm comm, Refusal& refusal) const {
    int inter = 0;
    int size = 0;
    refusal = off_.value_or(Refusal::erroneous_arguments);
    if (off_ || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || PMPI_Comm_size(comm, &size) != MPI_SUCCESS)
        return std::nullopt;
    refusal = inter ? Refusal::intercommunicator : Refusal::one_rank;
    if (inter || size < 2) return std::nullopt;
    refusal = Refusal::no_state;
    if (!world_) return std::nullopt;
    refusal = Refusal::other_jobs;
    const std::vector<topology::Rank> members = ranks_in_world(comm);
    if (members.empty()) return std::nullopt;
    refusal = Refusal::no_state;
    // See make_shadow_comm.
    if (static_cast<int>(members.size()) != size) return std::nullopt;
    return world_->restricted_to(members);
}

}  // namespace palmette::runtime
