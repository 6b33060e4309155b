// What palmette keeps per process: settings, the world's job, the report.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "palmette/runtime/observe/observer.hpp"
#include "palmette/runtime/settings/control.hpp"
#include "palmette/runtime/start/presence.hpp"
#include "palmette/runtime/start/probe.hpp"
#include "palmette/runtime/state/communicator.hpp"

namespace palmette::runtime {

class JobTimes;

class Process {
  public:
    /// The one of this process: a preload library can't be handed anything by the program.
    static Process& instance() {
        // Never destroyed: the program's own destructors may still call MPI.
        static Process* process = new Process;
        return *process;
    }

    /// Right after MPI_Init, in front of which `presence` was made. Collective over MPI_COMM_WORLD where all ranks are
    /// known to come, otherwise nothing is served: compares the settings of all ranks and finds out where they sit.
    /// Never fails the program: what goes wrong is noted and calls pass through.
    void start(Settings settings, const Presence& presence);
    /// For programs that use sessions only and never call MPI_Init.
    void start_without_world(Settings settings);
    /// Right before the last session ends, in a program without MPI_Init: forgets all that belongs to this MPI. The
    /// next session starts anew.
    void end_without_world();
    /// Counts the times that the MPI ended in this process: what was made under another number is gone with its MPI.
    std::uint64_t ends() const { return ends_.load(std::memory_order_acquire); }
    bool started() const { return started_.load(std::memory_order_acquire); }

    /// Collective over MPI_COMM_WORLD, right before MPI_Finalize: merges and writes the report. Calls pass through from
    /// here on.
    void finish();
    /// Right before MPI_Abort, which no other rank may know of: writes what this rank has counted.
    void abort();

    /// Why nothing at all is served, or nothing.
    std::optional<Refusal> off() const { return off_; }
    const Settings& settings() const { return settings_; }
    Report& report() { return report_; }
    const Observers& observers() const { return observers_; }
    /// The job of all ranks of MPI_COMM_WORLD; null where nothing is known.
    const topology::Job* world() const { return world_ ? &*world_ : nullptr; }
    int world_rank() const { return world_rank_; }

    /// The job of a communicator whose processes are all in MPI_COMM_WORLD, or nothing: `refusal` says why. Local;
    /// O(ranks).
    std::optional<topology::Job> job_of(MPI_Comm comm, Refusal& refusal) const;

    /// Forces an algorithm for communicators whose state is made from now on; see palmette_force. Throws base::Error.
    void force(select::Function function, std::string_view spec) { control_.force(settings_, function, spec); }

    /// What a call does to a communicator that has no state yet. All ranks make the same calls on it, so they count the
    /// same and make the state at the same call.
    enum class Making {
        never,   ///< neither counts nor makes it
        counts,  ///< must not wait for others
        makes,   ///< collectively, when enough calls have come
        now      ///< collectively, whatever has come
    };
    /// The state of a communicator; null where it can't be served: `refusal` says why.
    Communicator* communicator(MPI_Comm comm, Refusal& refusal, Making making = Making::makes) {
        if (Communicator* state = recent(comm)) {
            if (!state->unusable) return state;
            refusal = *state->unusable;
            return nullptr;
        }
        return find_communicator(comm, refusal, making);
    }

    /// Collective: a state to run compositions on, also where MPI's collectives aren't served. `settings` count where
    /// the MPI was initialized without palmette. Throws base::Error on all ranks alike.
    Communicator& composing(MPI_Comm comm, const Settings& settings);

    /// Keeps the costs that all ranks of the world have measured, for communicators made from now on.
    void keep_costs(const ProbedCosts& costs);

    /// Collective, before the communicator is freed.
    void leave_ways(MPI_Comm comm);

    /// One user less of a state, which goes with its last. Local, whatever others do: MPI_Comm_free of a shadow
    /// communicator waits for nobody.
    void release_user(Communicator& state);

    /// The state of a communicator on which this thread called last, also one that isn't usable; null: another one.
    Communicator* recent(MPI_Comm comm) const {
        const Recent& last = recent_;
        return last.comm == comm && last.generation == generation_.load(std::memory_order_acquire) ? last.state
                                                                                                   : nullptr;
    }

  private:
    /// What hangs on a communicator as an attribute.
    struct Attached {
        std::int64_t calls = 0;                          ///< before the state was made
        std::unique_ptr<Communicator> state;             ///< null: not made yet
        std::unique_ptr<Communicator> for_compositions;  ///< where `state` is unusable
    };

    void prepare(Settings settings);
    /// Whether all ranks of the job take part; says a line where not.
    bool all_are_present(const Presence& presence, int world_size) const;
    void meet_world(bool one_node);
    /// Collective: names the settings that differ, on rank 0's standard error and in the report.
    void warn_of_differing_settings();
    Communicator* find_communicator(MPI_Comm comm, Refusal& refusal, Making making);
    /// The attribute of a communicator, new where it had none; null where it can't be kept.
    Attached* attached_to(MPI_Comm comm) const;
    /// Why a communicator is never served, as each of its ranks can tell by itself.
    std::optional<Refusal> never_served(MPI_Comm comm) const;
    bool may_serve_nonblocking() const;
    std::unique_ptr<Communicator> make_communicator(MPI_Comm comm);
    MPI_Comm make_shadow_comm(MPI_Comm comm) const;
    bool oversubscribed() const;
    /// What is known of a communicator's ranks: the same for the next one of the same ranks.
    struct Place {
        std::vector<topology::Rank> members;     ///< in the world; empty: only this communicator's
        std::shared_ptr<const Settings> forced;  ///< that the rows below were looked up for
        topology::Job job;
        Communicator::AllLeftToMpi left;
        std::shared_ptr<Verdicts> verdicts;  ///< null: only this communicator's
    };
    /// Hash of the verdicts of earlier communicators of these ranks; 0: nothing is known.
    std::uint64_t verdicts_digest(const std::vector<topology::Rank>& members,
                                  const std::shared_ptr<const Settings>& forced);
    std::shared_ptr<const Place> place_of(std::vector<topology::Rank> members,
                                          const std::shared_ptr<const Settings>& forced);
    /// What the ranks of a new communicator have agreed on.
    struct CommunicatorSetup {
        std::shared_ptr<const Place> place;  ///< where they sit; null: it can't be served
        std::optional<Refusal> unusable = Refusal::no_state;
        DeviceAgreement::Drivers drivers;
    };
    /// Collective.
    CommunicatorSetup settle(MPI_Comm comm, MPI_Comm shadow_comm, const std::shared_ptr<const Settings>& forced);
    void write_report();
    /// Rank 0's part, where PALMETTE_JOBLOG asks for it.
    void log_job() const;
    void put_report(int size, double seconds, int aborted_by) const;
    void free_with_users(Communicator& state);
    static int forget(MPI_Comm comm, int keyval, void* attribute, void* extra);

    /// Shadow communicators that may live at once: MPIs have about two thousand context ids, most of them for the
    /// program.
    static constexpr int most_shadow_comms = 512;

    /// The communicator of this thread's last call. Handles are used again, so it counts only as long as no state has
    /// gone since.
    struct Recent {
        MPI_Comm comm{};  // with a null state; MPI_COMM_NULL is a variable in some MPIs
        std::uint64_t generation = 0;
        Communicator* state = nullptr;
    };
    static constinit thread_local Recent recent_;
    static constexpr std::size_t most_places = 16;
    std::mutex places_mutex_;
    std::vector<std::shared_ptr<const Place>> places_;  ///< the last one first
    std::atomic<std::uint64_t> generation_{1};

    std::mutex mutex_;
    std::atomic<bool> started_{false};
    bool started_world_ = false;
    std::atomic<std::uint64_t> ends_{0};
    std::atomic<bool> finished_{false};
    std::atomic<int> shadow_count_{0};
    Settings settings_;
    Control control_;
    std::optional<Refusal> off_ = Refusal::before_init_or_after_finalize;
    std::atomic<bool> aborted_{false};
    bool reports_agree_ = true;  ///< all ranks write a report, or none
    std::optional<topology::Job> world_;
    Report report_;
    Observers observers_;
    const JobTimes* job_times_ = nullptr;  ///< one of them, on rank 0 where PALMETTE_JOBLOG is set
    /// All ranks of the world, for palmette's own messages: nothing of the program's can get in between, and errors
    /// come back as codes. The program's communicators stay as they are, also their error handlers: MPICH tells one
    /// that was never set from one that was.
    MPI_Comm apart_ = MPI_COMM_NULL;
    bool several_threads_ = true;
    int keyval_ = MPI_KEYVAL_INVALID;
    int tag_limit_ = 32767;
    double start_time_ = 0;
    int world_rank_ = 0;
    Waiting waiting_{Waiting::Policy::mpi};  ///< copied into each communicator's executor
};

}  // namespace palmette::runtime
