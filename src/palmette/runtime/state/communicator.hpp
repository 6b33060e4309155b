// Per-communicator state: topology, cached plans, tags, shared memory, comparisons.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palmette/execute/binding.hpp"
#include "palmette/runtime/compare/comparison.hpp"
#include "palmette/runtime/compare/verdicts.hpp"
#include "palmette/runtime/lengths/repeated_counts.hpp"
#include "palmette/runtime/nccl/nccl_ranks.hpp"
#include "palmette/runtime/network/aggregation.hpp"
#include "palmette/runtime/observe/report.hpp"
#include "palmette/runtime/settings/settings.hpp"
#include "palmette/runtime/state/tag_space.hpp"
#include "palmette/runtime/transport/mpi_transport.hpp"
#include "palmette/runtime/transport/sharing.hpp"
#include "palmette/select/route.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::runtime {

struct ComposedNccl;
class NeighbourPlans;

using select::PlanKey;

/// The kind of calls whose comparison with the MPI's own covers calls with this key.
CallKind kind_of(const PlanKey& key);

/// A route and, where palmette serves, the program made for it. For uniform calls it is bound in advance.
struct CachedPlan {
    /// Data that exceeds the shared memory is processed in batches of this many bytes of each block; 0: all at once.
    struct Batches {
        std::int64_t bytes = 0;
        BoundProgram tail;  ///< for the last, shorter batch
    };
    struct Aggregates {
        Aggregation* with = nullptr;  ///< the communicator's, where aggregators combine
        BoundProgram by_hosts;        ///< then: the same without them
    };
    /// A neighbourhood collective.
    struct Neighbours {
        std::size_t named_buffers = 0;    ///< further ones of its program, all in the receive buffer
        NeighbourPlans* plans = nullptr;  ///< whose edges its program has, where lengths differ between calls
        std::int64_t padded_bytes = 0;    ///< above 0: blocks up to this size are padded to it, so that counts need
                                          ///< not be exchanged
        const std::vector<int>* kept_blocks = nullptr;  ///< of the receive buffer, which nothing is written to
    };
    /// What its calls are counted in.
    struct Tally {
        Report::Served* served = nullptr;         ///< its row in the report
        Report::Refused* refused = nullptr;       ///< the same, where palmette doesn't serve
        Comparison* comparison = nullptr;         ///< the communicator's, for all plans of its kind; null: none
        std::optional<std::uint32_t> recorded;    ///< its number in the recording, where calls are recorded
        double bound_s = 0;                       ///< lower bound of such a call's time, where the report knows it
        std::vector<std::int64_t> bound_lengths;  ///< where blocks may differ: the lengths that bound_s is for
    };

    PlanKey key;
    std::optional<Refusal> refusal;
    int users = 0;  ///< nonblocking and persistent operations that use it: it can't be evicted
    BufferedSends* buffered_sends = nullptr;  ///< for short messages, where sending from a copy pays
    Tally tally;
    select::Route route;
    plan::Program program;
    BoundProgram bound;  ///< where the call's sizes are uniform
    BoundLengths last;   ///< where lengths differ between calls
    Batches batches;
    Aggregates aggregates;
    Neighbours neighbours;

    plan::Collective collective() const { return route.request.collective; }
};

/// Attached to the communicator as an attribute: created in the first collective that may be served, freed with it.
class Communicator {
  public:
    Communicator(MPI_Comm shadow_comm, topology::Job job, int rank, int tag_limit, Waiting waiting);

    MPI_Comm shadow_comm() const { return shadow_comm_; }
    /// Collective: when the communicator is freed, or the MPI ends.
    void leave_aggregators() {
        for (const auto& one : aggregations_) one->leave();
    }
    const topology::Job& job() const { return job_; }
    int rank() const { return rank_; }
    /// Whether this rank counts the calls of all, also where there is no job (`unusable`).
    bool leads() const { return leads_; }
    void set_leads(bool leads) { leads_ = leads; }
    int size() const { return job_.size(); }
    MpiExecutor& executor() { return executor_; }
    /// The settings when this communicator was made, where algorithms were forced then; otherwise `usual`.
    const Settings& settings(const Settings& usual) const { return own_settings_ ? *own_settings_ : usual; }
    void keep_settings(std::shared_ptr<const Settings> own) { own_settings_ = std::move(own); }
    MpiExecutor make_executor() const { return MpiExecutor(waiting_); }
    /// Collective at the first call: whether all ranks may read the memory of those of their node.
    bool ranks_read_each_other();
    SharedNode* shared_node() { return sharing_ ? sharing_->node.get() : nullptr; }

    /// Reference count: the program's handle, and each background operation that is outstanding here or may be started
    /// again. The last one frees this: Process::release_user.
    std::atomic<int> users{1};
    /// The program has freed its communicator: its handle may have been reused.
    std::atomic<bool> freed{false};

    /// Set when this communicator can't be served (any more).
    std::optional<Refusal> unusable;

    /// The plan for a call, made on first use. Depends only on what all ranks know, so all get the same. A blocking
    /// call's is made collectively.
    CachedPlan& plan_for(const PlanKey& key, const Settings& settings) {
        CachedPlan*& slot = recent_[slot_of(key)];
        if (!slot || !(slot->key == key)) slot = &find_or_make(key, settings);
        return *slot;
    }

    /// That of a plan's kind; null where it isn't to be compared.
    Comparison* comparison_of(const CachedPlan& plan, const Settings& settings) {
        return is_compared(plan.key, settings) ? &comparison_for(plan, settings) : nullptr;
    }
    /// Collective, for a plan whose comparison is lost: takes the next candidate, or leaves the calls to the MPI.
    void replace_lost(CachedPlan& plan, const Settings& settings);
    /// Collective, when a comparison has come to a verdict: the next communicator of these ranks knows it.
    void keep_verdict(const CachedPlan& plan);
    /// Costs that nothing is known of are measured when a choice needs them first.
    void probe_when_needed() { may_probe_ = true; }
    /// Candidates of the model are simulated, by all ranks together, before one is chosen for a kind of blocking calls.
    void play_candidates() { plays_ = true; }
    /// Takes over what other communicators of the same ranks have found; this one's verdicts go there, too.
    void share_verdicts(std::shared_ptr<Verdicts> shared) {
        verdicts_.emplace(*shared);
        shared_verdicts_ = std::move(shared);
    }
    BufferedSends* buffered_sends_of(const CachedPlan& plan, const Settings& settings) const {
        const bool copies = plan.key.blocking && settings.copies_sends && job_.nodes().groups.count() > 1;
        return copies ? &BufferedSends::instance() : nullptr;
    }

    /// The report's row of a function whose calls are left to the MPI whatever their arguments; null where a plan has
    /// to be looked up.
    Report::Refused* always_refused(select::Function function, bool blocking) const {
        return left_.always[static_cast<std::size_t>(function)][blocking ? 1 : 0];
    }
    void refuse_always(select::Function function, bool blocking, Report::Refused& row) {
        left_.always[static_cast<std::size_t>(function)][blocking ? 1 : 0] = &row;
    }
    /// A range of block sizes that is left to the MPI, without looking up a plan.
    struct LeftToMpi {
        std::int64_t from = 1, to = 0;  ///< bytes, both included
        Report::Refused* row = nullptr;
        bool has(std::int64_t bytes) const { return from <= bytes && bytes <= to; }
    };
    /// Null: not known to be left to the MPI.
    const LeftToMpi* left_to_mpi(select::Function function, bool blocking, std::int64_t bytes) const {
        for (const LeftToMpi& left : left_.sizes[static_cast<std::size_t>(function)][blocking ? 1 : 0])
            if (left.has(bytes)) return &left;
        return nullptr;
    }
    /// What the table or settings leave to the MPI on a job: the same for all communicators of the same ranks.
    struct AllLeftToMpi {
        std::array<std::array<Report::Refused*, 2>, select::all_function_count> always{};
        /// Whether alltoallv and alltoallw are chosen by size where their counts repeat.
        std::array<bool, 2> repeats{};
        /// Their rows in the report, where the table leaves them to the MPI until counts are agreed; null: palmette
        /// serves them before, too.
        std::array<Report::Refused*, 2> until_agreed{};
        /// The smallest sizes and the next ones; a table has seldom more.
        std::array<std::array<std::array<LeftToMpi, 4>, 2>, select::all_function_count> sizes{};
    };
    static AllLeftToMpi left_to_mpi_on(const topology::Job& job, const Settings& settings, Report& report);
    void set_left_to_mpi(const AllLeftToMpi& left) { left_ = left; }

    /// Of alltoallv or alltoallw, where a choice by size may serve what ranks that don't know sizes leave to the MPI;
    /// else null. For blocking calls.
    RepeatedCounts* repeated_counts(select::Function function) {
        const std::size_t index = irregular_index(function);
        return index < repeats_.size() && left_.repeats[index] ? &repeats_[index] : nullptr;
    }
    /// The report's row of a blocking call that is left to the MPI, as nothing is agreed of its counts; null: it has to
    /// be looked at. Counts a call that has not to.
    Report::Refused* refused_until_agreed(select::Function function) {
        RepeatedCounts* repeated = repeated_counts(function);
        Report::Refused* row = repeated ? left_.until_agreed[irregular_index(function)] : nullptr;
        return row && repeated->count_if_skipped() ? row : nullptr;
    }

    /// Of devices, as all ranks know.
    struct Drivers {
        bool any = false;         ///< some rank has one
        bool of_the_mpi = false;  ///< the MPI takes the memory of their devices on all ranks
    };
    void set_drivers(const Drivers& drivers) { drivers_ = drivers; }
    /// Whether buffers of calls that nobody can agree on may lie on a device and are the MPI's to move then: it takes
    /// them, and may do so without staging. Where the user asks for a way of palmette's it serves.
    bool devices_are_the_mpis(select::Function function, const Settings& settings) const {
        return drivers_.any && drivers_.of_the_mpi && settings.device_path == Settings::DevicePath::automatic &&
               !settings.forced[static_cast<std::size_t>(function)];
    }

    /// Where all ranks have NCCL: by which calls on device memory go; else null.
    NcclRanks* nccl() const { return nccl_ && nccl_->in_service() ? nccl_.get() : nullptr; }
    /// Whether NCCL has such a function.
    static bool is_of_nccl(select::Function function);
    /// A blocking call is left to the MPI before a plan is made. Collective at each function's first one, which is the
    /// same on all ranks: later ones may bypass this.
    void is_left(select::Function function, const Settings& settings) {
        if (settings.device_path != Settings::DevicePath::nccl) [[likely]]
            return;
        const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(function);
        if (!(left_functions_ & bit)) [[unlikely]] {
            left_functions_ |= bit;
            first_left(function, settings);
        }
    }

    TagSpace tags;
    /// NCCL of the compositions' plans; gone with the last of these.
    std::weak_ptr<ComposedNccl> composed_nccl;
    int nccl_runs = 0;                           ///< of these plans that have been started
    std::shared_ptr<NeighbourPlans> neighbours;  ///< null: no neighbourhood collective has been called

  private:
    /// 0 alltoallv, 1 alltoallw, 2 others.
    static std::size_t irregular_index(select::Function function) {
        return function == select::Function::alltoallv ? 0 : function == select::Function::alltoallw ? 1 : 2;
    }

    static constexpr std::size_t most_plans = 256;
    static constexpr std::size_t recent_plans = 64;
    static std::size_t slot_of(const PlanKey& key) {
        const auto mixed = static_cast<std::uint64_t>(key.block_bytes * 31 + key.root) * 32 +
                           static_cast<std::uint64_t>(key.function) + (key.ordered ? 17 : 0);
        return mixed * 0x9e3779b97f4a7c15U >> 58;
    }

    CachedPlan& find_or_make(const PlanKey& key, const Settings& settings);
    /// Whether all ranks check for GPU drivers before this new plan.
    bool is_due_for_device_check();
    /// What becomes of a new kind of calls by the memory that its data may lie in.
    enum class Devices : std::uint8_t {
        may_be_served,
        are_the_mpis,  ///< some rank's lies on a device, and the MPI takes it there on all ranks
        are_unknown    ///< it may lie in memory that can't be looked at
    };
    /// Collective. Also finds out whether all have NCCL.
    Devices look_at_devices(select::Function function, const Settings& settings);
    void first_left(select::Function function, const Settings& settings);
    static bool is_compared(const PlanKey& key, const Settings& settings) {
        // Where the user wants the same bits everywhere a reduction's algorithm isn't a matter of its time.
        return settings.compare > 0 && key.blocking && !settings.forced[static_cast<std::size_t>(key.function)] &&
               (key.exact || !settings.reproducible);
    }
    /// Whether the model may choose from assumed costs: a comparison shows whether that was right, or the user wants
    /// none.
    static bool may_guess(const PlanKey& key, const Settings& settings) {
        return key.blocking && (settings.compare <= 0 || is_compared(key, settings));
    }
    Comparison& comparison_for(const CachedPlan& plan, const Settings& settings);
    /// Collective: measures costs between a few ranks, for this job and, in the process, for later communicators.
    void probe();
    /// Calls of the kind go to the MPI without a look at their plan.
    void leave_kind(CachedPlan& plan);
    void fill(CachedPlan& plan, const Settings& settings);
    /// The route by what this rank knows now. Collective where candidates are simulated.
    select::Route choose_route(const PlanKey& key, const Settings& settings);
    /// Collective at the first choice that needs measured costs or shared memory.
    select::Route agreed_route(const PlanKey& key, const Settings& settings);
    /// Collective, unless all are known: times of the candidates, each of which one rank has simulated. Infinity for
    /// those that take too long to simulate. Cost: an allreduce, and up to about 100 ms for the longest simulation.
    std::vector<double> play(const CallKind& kind, const topology::Job& job, const plan::Request& request,
                             const std::vector<select::Spec>& candidates);
    /// Collective. False where aggregators don't serve after all: Aggregation::why.
    bool aggregate(CachedPlan& plan, const select::Spec& spec, const Settings& settings);
    bool can_share(const Settings& settings) const;
    void set_up_sharing();
    /// Of each rank of the fullest node.
    std::int64_t ring_bytes() const;
    void bind_uniform(CachedPlan& plan);

    std::shared_ptr<const Settings> own_settings_;
    topology::Job job_, in_rank_order_;
    bool scattered_;
    MPI_Comm shadow_comm_;
    int rank_;
    bool leads_;
    Waiting waiting_;
    MpiExecutor executor_;
    std::optional<Sharing> sharing_;
    std::optional<bool> ranks_read_each_other_;
    std::array<CachedPlan*, recent_plans> recent_{};
    std::vector<std::unique_ptr<CachedPlan>> plans_;
    struct ComparedKind {
        CallKind kind;
        std::string algorithm;
        std::unique_ptr<Comparison> comparison;
    };
    std::vector<ComparedKind> comparisons_;
    bool may_probe_ = false;
    bool plays_ = false;
    struct Played {
        CallKind kind;
        bool shared_memory;
        std::string algorithm;
        double seconds;
    };
    std::vector<Played> played_;
    std::optional<Verdicts> verdicts_{std::in_place};
    std::shared_ptr<Verdicts> shared_verdicts_;               ///< null: no other communicator has these ranks
    std::vector<std::unique_ptr<Aggregation>> aggregations_;  ///< by level of the groups
    std::size_t next_victim_ = 0;
    std::uint64_t blocking_plans_made_ = 0;
    AllLeftToMpi left_;
    std::array<RepeatedCounts, 2> repeats_;
    std::uint32_t left_functions_ = 0;  ///< a bit for each
    Drivers drivers_;
    std::unique_ptr<NcclRanks> nccl_;
};

}  // namespace palmette::runtime
