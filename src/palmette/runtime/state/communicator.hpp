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
#include "palmette/runtime/observe/report.hpp"
#include "palmette/runtime/settings/settings.hpp"
#include "palmette/runtime/state/device_agreement.hpp"
#include "palmette/runtime/state/kept.hpp"
#include "palmette/runtime/state/tag_space.hpp"
#include "palmette/runtime/transport/mpi_transport.hpp"
#include "palmette/runtime/transport/sharing.hpp"
#include "palmette/runtime/ways/way.hpp"
#include "palmette/select/route.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::runtime {

using select::PlanKey;

/// The kind of calls whose comparison with the MPI's own covers calls with this key.
CallKind kind_of(const PlanKey& key);

/// A route and, where palmette serves, the program made for it. For uniform calls it is bound in advance.
struct CachedPlan {
    /// What its calls are counted in.
    struct Tally {
        Report::ServedRow* served = nullptr;      ///< its row in the report
        Report::RefusedRow* refused = nullptr;    ///< the same, where palmette doesn't serve
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
    execute::BoundProgram bound;  ///< where the call's sizes are uniform
    std::unique_ptr<Way> way = std::make_unique<Planned>();

    plan::Collective collective() const { return route.request.collective; }
};

/// Attached to the communicator as an attribute: created in the first collective that may be served, freed with it.
class Communicator {
  public:
    Communicator(MPI_Comm shadow_comm, topology::Job job, int rank, int tag_limit, Waiting waiting);

    MPI_Comm shadow_comm() const { return shadow_comm_; }
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
    node::SharedNode* shared_node() { return sharing_ ? sharing_->node.get() : nullptr; }

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

    /// The comparison for a plan's kind of calls; null where it isn't to be compared.
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
    Report::RefusedRow* always_refused(select::Function function, bool blocking) const {
        return left_.always[static_cast<std::size_t>(function)][blocking ? 1 : 0];
    }
    void refuse_always(select::Function function, bool blocking, Report::RefusedRow& row) {
        left_.always[static_cast<std::size_t>(function)][blocking ? 1 : 0] = &row;
    }
    /// A range of block sizes that is left to the MPI, without looking up a plan.
    struct LeftToMpi {
        std::int64_t from = 1, to = 0;  ///< bytes, both included
        Report::RefusedRow* row = nullptr;
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
        std::array<std::array<Report::RefusedRow*, 2>, select::all_function_count> always{};
        /// Functions whose ranks don't know each other's sizes, and may repeat them: alltoallv and alltoallw.
        static constexpr std::size_t irregular_count = 2;
        static std::optional<std::size_t> irregular_index(select::Function function) {
            if (function == select::Function::alltoallv) return 0;
            if (function == select::Function::alltoallw) return 1;
            return std::nullopt;
        }
        /// Whether alltoallv and alltoallw are chosen by size where their counts repeat.
        std::array<bool, irregular_count> repeats{};
        /// Their rows in the report, where the table leaves them to the MPI until counts are agreed; null: palmette
        /// serves them before, too.
        std::array<Report::RefusedRow*, irregular_count> until_agreed{};
        /// The smallest sizes and the next ones; a table has seldom more.
        std::array<std::array<std::array<LeftToMpi, 4>, 2>, select::all_function_count> sizes{};
    };
    static AllLeftToMpi left_to_mpi_on(const topology::Job& job, const Settings& settings, Report& report);
    void set_left_to_mpi(const AllLeftToMpi& left) { left_ = left; }
    const AllLeftToMpi& left() const { return left_; }

    /// What ways keep here.
    KeptByWays& kept() { return kept_; }
    /// Looks at blocking calls before their plans; null: none does.
    EarlyWay* early_way() const { return early_way_; }
    void set_early_way(EarlyWay* way) { early_way_ = way; }
    DeviceAgreement& devices() { return devices_; }
    /// Shared memory of each rank of the fullest node, bytes.
    std::int64_t ring_bytes() const;

    TagSpace tags;

  private:
    static constexpr std::size_t most_plans = 256;
    static constexpr std::size_t recent_plans = 64;
    static std::size_t slot_of(const PlanKey& key) {
        const auto mixed = static_cast<std::uint64_t>(key.block_bytes * 31 + key.root) * 32 +
                           static_cast<std::uint64_t>(key.function) + (key.ordered ? 17 : 0);
        return mixed * 0x9e3779b97f4a7c15U >> 58;
    }

    CachedPlan& find_or_make(const PlanKey& key, const Settings& settings);
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
    bool can_share(const Settings& settings) const;
    void set_up_sharing();

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
    KeptByWays kept_;  ///< outlives the plans
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
    std::shared_ptr<Verdicts> shared_verdicts_;  ///< null: no other communicator has these ranks
    std::size_t next_victim_ = 0;
    AllLeftToMpi left_;
    DeviceAgreement devices_;
    EarlyWay* early_way_ = nullptr;
};

}  // namespace palmette::runtime
