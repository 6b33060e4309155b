#include "palmette/runtime/process.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <new>
#include <vector>

#include "palmette/base/error.hpp"
#include "palmette/runtime/agreement.hpp"
#include "palmette/runtime/bypass.hpp"
#include "palmette/runtime/discovery.hpp"

namespace palmette::runtime {
namespace {

/// While alive, errors on `comm` come back as codes instead of ending the job.
class ErrorsReturn {
  public:
    explicit ErrorsReturn(MPI_Comm comm) : comm_(comm) {
        PMPI_Comm_get_errhandler(comm, &handler_);
        PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    }
    ErrorsReturn(const ErrorsReturn&) = delete;
    ErrorsReturn& operator=(const ErrorsReturn&) = delete;
    ~ErrorsReturn() {
        PMPI_Comm_set_errhandler(comm_, handler_);
        PMPI_Errhandler_free(&handler_);
    }

  private:
    MPI_Comm comm_;
    MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
};

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

bool Process::crowded() const {
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
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &Process::forget, &keyval_, nullptr);
    start_time_ = PMPI_Wtime();
    settings_.mpi = name_of_mpi();
    waiting_ = Waiting(settings_.waiting);
    int threads = MPI_THREAD_MULTIPLE;
    PMPI_Query_thread(&threads);
    Report::Counter::concurrent = threads == MPI_THREAD_MULTIPLE;
    // Several threads would have to share the copies.
    settings_.copies_sends = settings_.mpi == "mpich" && threads != MPI_THREAD_MULTIPLE;
    if (!settings_.enable) off_ = Refusal::switched_off;
}

void Process::start(Settings settings) {
    const std::lock_guard lock(mutex_);
    if (started_) return;
    off_ = std::nullopt;
    prepare(std::move(settings));
    int* tag_limit = nullptr;
    int found = 0;
    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_limit, &found);
    if (found) tag_limit_ = *tag_limit;
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    world_rank_ = rank;
    if (!settings_.complaints.empty()) {
        report_.note(settings_.complaints);
        if (rank == 0) std::fprintf(stderr, "palmette: %s\n", settings_.complaints.c_str());
    }
    const ErrorsReturn guard(MPI_COMM_WORLD);
    // Nothing of the program's can be under way yet.
    const auto agreement = agree(MPI_COMM_WORLD, {settings_.hash, true, true, true});
    if (!agreement || !agreement->settings_agree) {
        off_ = Refusal::settings_differ;
        if (rank == 0)
            std::fprintf(stderr,
                         "palmette: PALMETTE_ settings or the table's contents differ between ranks, so nothing is "
                         "served; give all ranks the same environment\n");
    }
    if (!off_) {
        try {
            Discovered found_job = discover(MPI_COMM_WORLD, settings_);
            if (!found_job.note.empty()) {
                report_.note(found_job.note);
                if (rank == 0) std::fprintf(stderr, "palmette: %s\n", found_job.note.c_str());
            }
            world_ = std::move(found_job.job);
            settings_.crowded = !all_true(MPI_COMM_WORLD, !crowded()).value_or(true);
        } catch (const std::exception& error) {
            report_.note(error.what());
        }
    }
    // A nonblocking call can't make it, since that waits for the others.
    Refusal refusal = Refusal::no_state;
    if (may_serve_nonblocking()) find_communicator(MPI_COMM_WORLD, refusal, true);
    started_.store(true, std::memory_order_release);
}

bool Process::may_serve_nonblocking() const {
    if (off_ || !world_ || world_->size() < 2) return false;
    for (std::size_t f = 0; f < select::function_count; ++f) {
        const auto& forced = settings_.forced[f];
        if (forced ? forced->algorithm.has_value()
                   : !settings_.table.always_mpi(static_cast<select::Function>(f), *world_,
                                                 {settings_.mpi, settings_.crowded, false}))
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

int Process::forget(MPI_Comm, int, void* attribute, void*) {
    auto& state = *static_cast<Communicator*>(attribute);
    Process& process = instance();
    state.freed.store(true, std::memory_order_release);
    process.generation_.fetch_add(1, std::memory_order_acq_rel);
    close_bypasses();
    // What is under way on the hidden communicator goes on. No lock: some MPIs come here while they progress, with all
    // that the caller has locked.
    process.let_go(state);
    return MPI_SUCCESS;
}

void Process::let_go(Communicator& state) {
    if (state.users.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    // Inside of MPI_Finalize the MPI takes its communicators down itself.
    if (MPI_Comm hidden = state.hidden(); hidden != MPI_COMM_NULL && !finished_) {
        PMPI_Comm_free(&hidden);
        --hidden_count_;
    }
    delete &state;
}

Communicator* Process::find_communicator(MPI_Comm comm, Refusal& refusal, bool may_make) {
    if (off_) {
        refusal = *off_;
        return nullptr;
    }
    if (comm == MPI_COMM_NULL) {
        refusal = Refusal::erroneous_arguments;
        return nullptr;
    }
    Communicator* state = nullptr;
    int found = 0;
    PMPI_Comm_get_attr(comm, keyval_, &state, &found);
    if (!found) {
        int inter = 0;
        int size = 0;
        refusal = Refusal::erroneous_arguments;
        if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || PMPI_Comm_size(comm, &size) != MPI_SUCCESS)
            return nullptr;
        if (inter || size < 2) {
            auto made = std::make_unique<Communicator>(MPI_COMM_NULL, topology::Job::flat(1), 0, tag_limit_, waiting_);
            int rank = 0;
            PMPI_Comm_rank(comm, &rank);
            made->set_leads(rank == 0);
            made->unusable = inter ? Refusal::intercommunicator : Refusal::one_rank;
            state = keep(comm, std::move(made));
        } else if (may_make) {
            state = make_communicator(comm, refusal);
        } else {
            refusal = Refusal::no_state_yet;
            return nullptr;
        }
    }
    if (!state) {
        refusal = Refusal::no_state;
        return nullptr;
    }
    recent_ = {comm, generation_.load(std::memory_order_acquire), state};
    if (state->unusable) refusal = *state->unusable;
    return state->unusable ? nullptr : state;
}

Communicator* Process::keep(MPI_Comm comm, std::unique_ptr<Communicator> state) {
    const ErrorsReturn guard(comm);
    if (PMPI_Comm_set_attr(comm, keyval_, state.get()) != MPI_SUCCESS) return nullptr;
    return state.release();
}

Communicator* Process::make_communicator(MPI_Comm comm, Refusal& refusal) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    const ErrorsReturn guard(comm);
    refusal = Refusal::no_state;
    // A duplicate would call the program's attribute callbacks; a communicator made from the group has none.
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm hidden = MPI_COMM_NULL;
    PMPI_Comm_group(comm, &group);
    // MPICH 5 gives too large a group for a grid that was cut out of a communicator; then there is none that fits.
    int members = 0;
    int size = 0;
    PMPI_Group_size(group, &members);
    PMPI_Comm_size(comm, &size);
    const int error = members == size ? PMPI_Comm_create(comm, group, &hidden) : MPI_ERR_GROUP;
    PMPI_Group_free(&group);
    std::optional<Refusal> unusable;
    std::shared_ptr<const Settings> forced = control_.settings();
    const Settings& settings = forced ? *forced : settings_;
    topology::Job job = topology::Job::flat(1);
    if (error != MPI_SUCCESS || hidden == MPI_COMM_NULL) {
        hidden = MPI_COMM_NULL;
        unusable = Refusal::no_state;
    } else {
        PMPI_Comm_set_errhandler(hidden, MPI_ERRORS_RETURN);
        unusable = settle(comm, hidden, settings, job);
        if (unusable)
            PMPI_Comm_free(&hidden);
        else
            ++hidden_count_;
    }
    auto state = std::make_unique<Communicator>(hidden, std::move(job), rank, tag_limit_, waiting_);
    state->unusable = unusable;
    if (!unusable) state->find_always_refused(settings, report_);
    state->keep_settings(std::move(forced));
    return keep(comm, std::move(state));
}

std::optional<Refusal> Process::settle(MPI_Comm comm, MPI_Comm hidden, const Settings& settings, topology::Job& job) {
    const std::vector<topology::Rank> members = world_ ? ranks_in_world(comm) : std::vector<topology::Rank>();
    const auto agreement = agree(hidden, {settings.hash, true, !members.empty(), hidden_count_ < most_hidden});
    if (!agreement) return Refusal::no_state;
    if (!agreement->settings_agree) return Refusal::settings_differ;
    if (!agreement->room) return Refusal::too_many_communicators;
    try {
        job = agreement->world_known ? world_->restricted_to(members) : discover(hidden, settings).job;
    } catch (const base::Error& problem) {
        // The same on all ranks of the communicator.
        report_.note(problem.what());
        return Refusal::no_state;
    }
    return std::nullopt;
}

void Process::write_report() {
    int rank = 0;
    int size = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    const double seconds = PMPI_Wtime() - start_time_;
    // Messages of the program that nobody has received must not get in between.
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm apart = MPI_COMM_NULL;
    PMPI_Comm_group(MPI_COMM_WORLD, &group);
    const int error = PMPI_Comm_create(MPI_COMM_WORLD, group, &apart);
    PMPI_Group_free(&group);
    if (error != MPI_SUCCESS || apart == MPI_COMM_NULL) return;
    // The order of merging follows from the world's tree, so all must have it.
    const bool all_know = all_true(apart, world_ && world_->size() == size).value_or(false);
    report_.merge_to_root(apart, all_know ? &*world_ : nullptr);
    PMPI_Comm_free(&apart);
    if (rank != 0) return;
    if (settings_.report == "1") {
        std::fputs(report_.page(size, seconds).c_str(), stderr);
        return;
    }
    std::ofstream out(settings_.report);
    out << report_.to_json(size, seconds, world_ ? world_->to_json() : base::Json()).dump(1) << '\n';
    if (!out.flush())
        std::fprintf(stderr, "palmette: %s: the report can't be written; check the path and its permissions\n",
                     settings_.report.c_str());
}

void Process::finish() {
    if (!started_ || finished_) return;
    close_bypasses();
    if (settings_.copies_sends) Outbox::instance().drain();
    if (!settings_.report.empty() && off_ != Refusal::settings_differ) {
        const ErrorsReturn guard(MPI_COMM_WORLD);
        write_report();
    }
    finished_ = true;
    off_ = Refusal::before_init_or_after_finalize;
    generation_.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace palmette::runtime
