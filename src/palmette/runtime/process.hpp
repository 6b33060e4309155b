// What palmette keeps per process: settings, the world's job, the report.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "palmette/runtime/communicator.hpp"
#include "palmette/runtime/control.hpp"

namespace palmette::runtime {

class Process {
  public:
    /// The one of this process: a preload library can't be handed anything by the program.
    static Process& instance();

    /// Collective over MPI_COMM_WORLD, right after MPI_Init: compares the settings of all ranks and finds out where they sit. Never fails the program: what
    /// goes wrong is noted and calls pass through.
    void start(Settings settings);
    /// For programs that use sessions only and never call MPI_Init.
    void start_without_world(Settings settings);
    bool started() const { return started_.load(std::memory_order_acquire); }

    /// Collective over MPI_COMM_WORLD, right before MPI_Finalize: merges and writes the report. Calls pass through from here on.
    void finish();

    /// Why nothing at all is served, or nothing.
    std::optional<Refusal> off() const { return off_; }
    const Settings& settings() const { return settings_; }
    Report& report() { return report_; }
    /// The job of all ranks of MPI_COMM_WORLD; null where nothing is known.
    const topology::Job* world() const { return world_ ? &*world_ : nullptr; }
    int world_rank() const { return world_rank_; }

    /// Forces an algorithm for communicators whose state is made from now on; see palmette_force. Throws base::Error.
    void force(select::Function function, std::string_view spec) { control_.force(settings_, function, spec); }

    /// The state of a communicator, made collectively when it has none yet; unless `may_make` isn't set, for calls that must not wait for others.
    /// Null where it can't be served: `refusal` says why.
    Communicator* communicator(MPI_Comm comm, Refusal& refusal, bool may_make = true) {
        if (Communicator* state = recent(comm)) {
            if (!state->unusable) return state;
            refusal = *state->unusable;
            return nullptr;
        }
        return find_communicator(comm, refusal, may_make);
    }

    /// One user less of a state, which goes with its last. Local, whatever others do: MPI_Comm_free of a hidden
    /// communicator waits for nobody.
    void let_go(Communicator& state);

    /// The state of a communicator on which this thread called last, also one that isn't usable; null: another one.
    Communicator* recent(MPI_Comm comm) const {
        const Recent& last = recent_;
        return last.comm == comm && last.generation == generation_.load(std::memory_order_acquire) ? last.state
                                                                                                   : nullptr;
    }

  private:
    void prepare(Settings settings);
    Communicator* find_communicator(MPI_Comm comm, Refusal& refusal, bool may_make);
    bool may_serve_nonblocking() const;
    Communicator* make_communicator(MPI_Comm comm, Refusal& refusal);
    Communicator* keep(MPI_Comm comm, std::unique_ptr<Communicator> state);
    bool crowded() const;
    /// Collective: whether and how a new communicator is served.
    std::optional<Refusal> settle(MPI_Comm comm, MPI_Comm hidden, const Settings& settings, topology::Job& job);
    void write_report();
    static int forget(MPI_Comm comm, int keyval, void* attribute, void* extra);

    /// Hidden communicators that may live at once: MPIs have about two thousand context ids, most of them for the program.
    static constexpr int most_hidden = 512;

    /// The communicator of this thread's last call. Handles are used again, so it counts only as long as no state has gone since.
    struct Recent {
        MPI_Comm comm = MPI_COMM_NULL;
        std::uint64_t generation = 0;
        Communicator* state = nullptr;
    };
    static thread_local Recent recent_;
    std::atomic<std::uint64_t> generation_{1};

    std::mutex mutex_;
    std::atomic<bool> started_{false};
    std::atomic<bool> finished_{false};
    std::atomic<int> hidden_count_{0};
    Settings settings_;
    Control control_;
    std::optional<Refusal> off_ = Refusal::before_init_or_after_finalize;
    std::optional<topology::Job> world_;
    Report report_;
    int keyval_ = MPI_KEYVAL_INVALID;
    int tag_limit_ = 32767;
    double start_time_ = 0;
    int world_rank_ = 0;
    Waiting waiting_{Waiting::Policy::mpi};  ///< copied into each communicator's executor
};

}  // namespace palmette::runtime
