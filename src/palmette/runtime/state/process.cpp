#include "palmette/runtime/state/process.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <new>
#include <thread>
#include <vector>

#include "palmette/base/error.hpp"
#include "palmette/base/files.hpp"
#include "palmette/base/text.hpp"
#include "palmette/runtime/data/device_library.hpp"
#include "palmette/runtime/state/bypass.hpp"
#include "palmette/runtime/state/discovery.hpp"
#include "palmette/runtime/state/reporting.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

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

thread_local Process::Recent Process::recent_;

Process& Process::instance() {
    // Never destroyed: the program's own destructors may still call MPI.
    static Process* process = new Process;
    return *process;
}

bool Process::oversubscribed() const {
    // Simulated hosts have a core for each rank, whatever the machine has that simulates them.
    if (!world_ || settings_.mpi == "smpi") return false;
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const topology::Partition& nodes = world_->nodes().groups;
    const std::int32_t group = nodes.group_of(world_->position_of(topology::Rank{rank}).value);
    return nodes.size_of(group) > static_cast<std::int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
}

void Process::prepare(Settings settings) {
    settings_ = std::move(settings);
    finished_ = false;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &Process::forget, &keyval_, nullptr);
    start_time_ = PMPI_Wtime();
    settings_.mpi = name_of_mpi();
    waiting_ = Waiting(settings_.waiting);
    int threads = MPI_THREAD_MULTIPLE;
    PMPI_Query_thread(&threads);
    several_threads_ = threads == MPI_THREAD_MULTIPLE;
    Report::Counter::concurrent = several_threads_;
    // Several threads would have to share the copies.
    settings_.copies_sends = settings_.mpi == "mpich" && !several_threads_;
    if (!settings_.enable) off_ = Refusal::switched_off;
    observers_.clear();
    if (!settings_.report.empty()) observers_.add(std::make_unique<Reporting>());
    if (settings_.verbose > 0) observers_.add(std::make_unique<Saying>(settings_.verbose));
}

bool Process::everyone_is_here(const Presence& presence, int world_size) const {
    switch (presence.look(world_size)) {
        case Presence::Verdict::everyone:
            return true;
        case Presence::Verdict::unknown:
            wait_for_everyone();
            return true;
        default:
            break;
    }
    if (presence.tells())
        std::fprintf(stderr,
                     "palmette: %d of the job's %d ranks on this host run without palmette's library, so nothing is "
                     "served; start all "
                     "ranks under `palmette run`, or none (a wrapper that unsets LD_PRELOAD, or another program of the "
                     "job, leaves it out)\n",
                     presence.missing(), presence.missing() + presence.here());
    return false;
}

void Process::tell_differing_settings() {
    std::string names;
    // Another version's list of settings may be another one.
    const bool comparable = all_same(apart_, settings_.values.size()).value_or(false);
    reports_agree_ = comparable;
    for (std::size_t i = 0; comparable && i < settings_.values.size(); ++i) {
        const auto& [name, hash] = settings_.values[i];
        if (all_same(apart_, hash).value_or(false)) continue;
        names += (names.empty() ? "" : ", ") + name;
        if (name == "PALMETTE_REPORT") reports_agree_ = false;
    }
    if (names.empty()) names = "palmette's versions or PALMETTE_ settings";
    const std::string text = base::cat("between ranks ", names, " differ", off_ ? ", so nothing is served" : "",
                                       "; give all ranks the same environment");
    report_.note(text);
    if (world_rank_ == 0) std::fprintf(stderr, "palmette: %s\n", text.c_str());
}

void Process::meet_world(bool one_node) {
    MPI_Group world = MPI_GROUP_NULL;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    const int error = PMPI_Comm_create(MPI_COMM_WORLD, world, &apart_);
    PMPI_Group_free(&world);
    if (error != MPI_SUCCESS || apart_ == MPI_COMM_NULL) {
        apart_ = MPI_COMM_NULL;
        off_ = Refusal::no_state;
        return;
    }
    PMPI_Comm_set_errhandler(apart_, MPI_ERRORS_RETURN);
    const bool on_host = !settings_.device_check || !device_library_is_loaded();
    const auto agreement = agree(apart_, {settings_.hash, true, true, true, on_host, settings_.values_hash, true});
    if (!agreement || !agreement->settings_agree) off_ = Refusal::settings_differ;
    if (!agreement) reports_agree_ = false;  // after an error of the MPI nothing more is sent there
    if (agreement && !(agreement->settings_agree && agreement->values_agree)) tell_differing_settings();
    if (off_) return;
    if (!agreement->host_memory) {
        tell_of_device_memory(world_rank_);
        off_ = Refusal::device_memory;
        return;
    }
    try {
        Discovered found_job = discover(apart_, settings_, one_node);
        if (!found_job.note.empty()) {
            report_.note(found_job.note);
            if (world_rank_ == 0) std::fprintf(stderr, "palmette: %s\n", found_job.note.c_str());
        }
        world_ = std::move(found_job.job);
        settings_.oversubscribed = !all_true(apart_, !oversubscribed()).value_or(true);
        ranks_are_oversubscribed.store(settings_.oversubscribed, std::memory_order_relaxed);
    } catch (const std::exception& problem) {
        report_.note(problem.what());
    }
}

void Process::start(Settings settings, const Presence& presence) {
    const std::lock_guard lock(mutex_);
    if (started_world_) return;
    started_world_ = true;
    // A program may have used sessions before: their communicators keep what they have.
    if (!started_) {
        off_ = std::nullopt;
        prepare(std::move(settings));
    }
    int* tag_limit = nullptr;
    int found = 0;
    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_limit, &found);
    if (found) tag_limit_ = *tag_limit;
    int size = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank_);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!settings_.complaints.empty()) {
        report_.note(settings_.complaints);
        if (world_rank_ == 0) std::fprintf(stderr, "palmette: %s\n", settings_.complaints.c_str());
    }
    if (everyone_is_here(presence, size)) {
        meet_world(presence.one_node());
        // A nonblocking call can't make it, since that waits for the others.
        Refusal refusal = Refusal::no_state;
        if (may_serve_nonblocking()) find_communicator(MPI_COMM_WORLD, refusal, Making::makes);
    } else {
        off_ = Refusal::not_everywhere;
    }
    started_.store(true, std::memory_order_release);
}

bool Process::may_serve_nonblocking() const {
    if (off_ || !world_ || world_->size() < 2) return false;
    for (std::size_t f = 0; f < select::function_count; ++f) {
        const auto& forced = settings_.forced[f];
        if (forced ? forced->algorithm.has_value()
                   : !settings_.table.always_mpi(static_cast<select::Function>(f), *world_,
                                                 {settings_.mpi, settings_.oversubscribed, false}))
            return true;
    }
    return false;
}

void Process::start_without_world(Settings settings) {
    const std::lock_guard lock(mutex_);
    if (started_) return;
    off_ = std::nullopt;
    prepare(std::move(settings));
    settings_.copies_sends = false;  // there is no end at which to wait for them
    started_.store(true, std::memory_order_release);
}

void Process::end_without_world() {
    const std::lock_guard lock(mutex_);
    ends_.fetch_add(1, std::memory_order_acq_rel);
    if (!started_) return;
    // The next MPI doesn't know this key: it would never call `forget`, and a communicator with the same handle would
    // be taken for one of today's.
    close_bypasses();
    finished_ = true;
    PMPI_Comm_free_keyval(&keyval_);
    generation_.fetch_add(1, std::memory_order_acq_rel);
    hidden_count_ = 0;
    off_ = Refusal::before_init_or_after_finalize;
    started_.store(false, std::memory_order_release);
}

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
    // What is under way on the hidden communicator goes on. No lock: some MPIs come here while they progress, with all
    // that the caller has locked.
    let_go(state);
}

void Process::let_go(Communicator& state) {
    if (state.users.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    // Inside of MPI_Finalize the MPI takes its communicators down itself; and it may have come without palmette.
    int finalized = 0;
    PMPI_Finalized(&finalized);
    if (MPI_Comm hidden = state.hidden(); hidden != MPI_COMM_NULL && hidden != apart_ && !finished_ && finalized == 0) {
        PMPI_Comm_free(&hidden);
        --hidden_count_;
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
    if (attached->state && attached->state->hidden() != MPI_COMM_NULL) return *attached->state;
    if (!attached->for_compositions) {
        MPI_Group group = MPI_GROUP_NULL;
        MPI_Comm hidden = MPI_COMM_NULL;
        PMPI_Comm_group(comm, &group);
        const int error = PMPI_Comm_create(comm, group, &hidden);
        PMPI_Group_free(&group);
        if (error != MPI_SUCCESS || hidden == MPI_COMM_NULL)
            base::fail("the communicator can't be used: MPI gives no other one with its ranks");
        PMPI_Comm_set_errhandler(hidden, MPI_ERRORS_RETURN);
        int rank = 0;
        PMPI_Comm_rank(hidden, &rank);
        attached->for_compositions =
            std::make_unique<Communicator>(hidden, discover(hidden, settings_).job, rank, tag_limit_, waiting_);
        ++hidden_count_;
    }
    return *attached->for_compositions;
}

MPI_Comm Process::make_hidden(MPI_Comm comm) const {
    if (comm == MPI_COMM_WORLD && apart_ != MPI_COMM_NULL) return apart_;
    // A duplicate would call the program's attribute callbacks; a communicator made from the group has none.
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm hidden = MPI_COMM_NULL;
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
                    ? PMPI_Comm_create_group(apart_, group, tag, &hidden)
                    : PMPI_Comm_create(comm, group, &hidden);
    PMPI_Group_free(&group);
    if (error != MPI_SUCCESS || hidden == MPI_COMM_NULL) return MPI_COMM_NULL;
    PMPI_Comm_set_errhandler(hidden, MPI_ERRORS_RETURN);
    return hidden;
}

std::unique_ptr<Communicator> Process::make_communicator(MPI_Comm comm) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    std::optional<SaysWhenLate> line;
    // Nobody has looked who is there.
    if (!world_)
        line.emplace(
            base::cat("rank ", rank,
                      " has waited 5 s for the others of its communicator in a collective, where they are late, or run "
                      "without palmette's library: start all ranks under `palmette run`, or none"));
    MPI_Comm hidden = make_hidden(comm);
    const std::shared_ptr<const Settings> forced = control_.settings();
    std::optional<Refusal> unusable = Refusal::no_state;
    std::shared_ptr<const Place> place;
    if (hidden != MPI_COMM_NULL) {
        place = settle(comm, hidden, forced, unusable);
        if (!place && hidden != apart_)
            PMPI_Comm_free(&hidden);
        else if (hidden != apart_)
            ++hidden_count_;
    }
    auto state = std::make_unique<Communicator>(
        place ? hidden : MPI_COMM_NULL, place ? place->job : topology::Job::flat(1), rank, tag_limit_, waiting_);
    if (place)
        state->leave(place->left);
    else
        state->unusable = unusable;
    state->keep_settings(forced);
    return state;
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
    const Communicator::Left left = Communicator::left_on(job, forced ? *forced : settings_, report_);
    if (places_.size() == most_places) places_.pop_back();
    places_.insert(places_.begin(),
                   std::make_shared<const Place>(Place{std::move(members), forced, std::move(job), left}));
    return places_.front();
}

std::shared_ptr<const Process::Place> Process::settle(MPI_Comm comm, MPI_Comm hidden,
                                                      const std::shared_ptr<const Settings>& forced,
                                                      std::optional<Refusal>& unusable) {
    const Settings& settings = forced ? *forced : settings_;
    std::vector<topology::Rank> members = world_ ? ranks_in_world(comm) : std::vector<topology::Rank>();
    const auto agreement = agree(hidden, {settings.hash, true, !members.empty(), hidden_count_ < most_hidden,
                                          !settings.device_check || !device_library_is_loaded()});
    unusable = !agreement                     ? Refusal::no_state
               : !agreement->settings_agree   ? Refusal::settings_differ
               : !agreement->has_communicator ? Refusal::too_many_communicators
               : !agreement->host_memory      ? std::optional(Refusal::device_memory)
                                              : std::nullopt;
    if (unusable == Refusal::device_memory) {
        int rank = 0;
        PMPI_Comm_rank(comm, &rank);
        tell_of_device_memory(rank);
    }
    if (unusable) return nullptr;
    try {
        if (agreement->world_known) return place_of(std::move(members), forced);
        topology::Job job = discover(hidden, settings).job;
        const Communicator::Left left = Communicator::left_on(job, settings, report_);
        return std::make_shared<const Place>(Place{{}, forced, std::move(job), left});
    } catch (const base::Error& problem) {
        // The same on all ranks of the communicator.
        report_.note(problem.what());
        unusable = Refusal::no_state;
        return nullptr;
    }
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
    // See make_hidden.
    if (static_cast<int>(members.size()) != size) return std::nullopt;
    return world_->restricted_to(members);
}

void Process::write_report() {
    int rank = 0;
    int size = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    const double seconds = PMPI_Wtime() - start_time_;
    // Messages of a collective that failed must not get in between.
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm apart = MPI_COMM_NULL;
    PMPI_Comm_group(apart_, &group);
    const int error = PMPI_Comm_create(apart_, group, &apart);
    PMPI_Group_free(&group);
    if (error != MPI_SUCCESS || apart == MPI_COMM_NULL) return;
    // The order of merging follows from the world's tree, so all must have it.
    const bool all_know = all_true(apart, world_ && world_->size() == size).value_or(false);
    report_.merge_to_root(apart, all_know ? &*world_ : nullptr);
    PMPI_Comm_free(&apart);
    if (rank == 0) put_report(size, seconds, -1);
}

void Process::put_report(int size, double seconds, int aborted_by) const {
    if (settings_.report == "1") {
        std::fputs(report_.page(size, seconds, aborted_by).c_str(), stderr);
        return;
    }
    const base::Json report = report_.to_json(size, seconds, world_ ? world_->to_json() : base::Json(), aborted_by);
    if (!base::replace_file(settings_.report, report.dump(1) + "\n"))
        std::fprintf(stderr, "palmette: %s: the report can't be written; check the path and its permissions\n",
                     settings_.report.c_str());
}

void Process::abort() {
    if (!started_ || finished_ || settings_.report.empty() || apart_ == MPI_COMM_NULL || aborted_.exchange(true))
        return;
    close_bypasses();  // what went straight to the MPI is counted there
    int size = 1;
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    put_report(size, PMPI_Wtime() - start_time_, world_rank_);
    // Launchers drop what they haven't read of a job's output when it aborts.
    if (settings_.report == "1") std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

void Process::finish() {
    if (!started_ || finished_) return;
    close_bypasses();
    if (settings_.copies_sends) BufferedSends::instance().drain();
    if (!settings_.report.empty() && apart_ != MPI_COMM_NULL && reports_agree_) write_report();
    if (apart_ != MPI_COMM_NULL) PMPI_Comm_free(&apart_);
    finished_ = true;
    off_ = Refusal::before_init_or_after_finalize;
    generation_.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace palmette::runtime
