// The report: which calls palmette served, which were left to the MPI and why.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "palmette/base/json.hpp"
#include "palmette/model/bound/crossed_edges.hpp"
#include "palmette/runtime/observe/report_topologies.hpp"
#include "palmette/select/table.hpp"
#include "palmette/select/verdict.hpp"

namespace palmette::runtime {

/// Why a call went to the MPI. One sentence each in `sentence_of`.
enum class Refusal : std::uint8_t {
    switched_off,
    before_init_or_after_finalize,
    intercommunicator,
    one_rank,
    settings_differ,
    erroneous_arguments,
    chosen,  ///< the table or a setting says so
    precondition,
    too_many_tags,
    no_state,
    too_many_communicators,
    datatype,
    no_state_yet,
    lengths_unknown,
    slower,     ///< as pairs of calls in this job have shown
    compared,   ///< done by the MPI to compare
    undecided,  ///< done by the MPI until comparing has come to a verdict
    few_calls,
    not_everywhere,
    other_jobs,
    device_memory,
    devices_of_the_mpi,
    counts_changed,
    lengths_not_remembered,
    count,
};
const char* sentence_of(Refusal refusal);

/// Counts of one process, merged over all ranks at the end. Safe to use from several threads.
class Report {
  public:
    using Function = select::Function;

    /// A counter that costs a plain addition, or an atomic one where the program's threads call MPI concurrently.
    class Counter {
      public:
        void add(std::int64_t more = 1) {
            if (concurrent)
                value_.fetch_add(more, std::memory_order_relaxed);
            else
                value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
        }
        std::int64_t load() const { return value_.load(std::memory_order_relaxed); }
        static inline bool concurrent = true;  ///< set once at the start

      private:
        std::atomic<std::int64_t> value_{0};
    };
    /// Calls of one kind. An operation is counted at rank 0 of its communicator; rows count that rank's calls apart
    /// from the others'.
    struct Calls {
        Counter of_others, of_first;
        void add(bool first) { (first ? of_first : of_others).add(); }
        std::int64_t operations() const { return of_first.load(); }
        std::int64_t rank_calls() const { return of_first.load() + of_others.load(); }
    };
    /// Calls that were served, or that were not. Rows have stable addresses, so that plans can point at theirs.
    struct ServedRow {
        Calls calls;
        std::int64_t min_bytes = INT64_MAX, max_bytes = INT64_MIN;  ///< -1: the ranks don't know
        double seconds = 0, max_seconds = 0;
        double bound_seconds = 0;     ///< the physical limits of those calls that have one, together
        std::int64_t bounded = 0;     ///< how many have
        model::CrossedEdges crossed;  ///< of calls whose limit no rank knows alone
        std::string reason;
        /// Mean time of a call in lower bounds; 0 where some call has no bound.
        double multiple() const;
        double mean_seconds() const;
    };
    struct RefusedRow {
        Calls calls;
    };
    /// Outcome of comparisons of one algorithm with the MPI's own.
    struct ComparisonRow {
        std::int64_t pairs = 0;
        double ours_s = 0, mpi_s = 0;         ///< medians of the plan that was compared last
        double cost_s = 0;                    ///< of comparing
        std::array<std::int64_t, 4> plans{};  ///< by verdict
        std::int64_t& of(select::Verdict verdict) { return plans[static_cast<std::size_t>(verdict)]; }
    };
    ComparisonRow& compared_row(Function function, std::int64_t block_bytes, const std::string& algorithm);
    ServedRow& served_row(Function function, std::int64_t block_bytes, const std::string& algorithm,
                          const std::string& reason, bool blocking = true);
    RefusedRow& refused_row(Function function, Refusal refusal, const std::string& detail);
    /// Calls that aggregators should have served, by why hosts did.
    Calls& by_hosts_row(const std::string& why);
    /// Calls of this process so far that palmette served.
    std::int64_t served_calls(Function function) const;
    /// All calls of this process so far: those that palmette served, and those that went to the MPI.
    std::pair<std::int64_t, std::int64_t> own_calls() const;

    /// Adds the time of a served call, where times are taken.
    void timed(ServedRow& row, double seconds);
    /// Adds the limit of a served call; from one of its ranks.
    void bounded(ServedRow& row, double bound_s);
    /// Adds this rank's part of the limit of a served call; from all of its ranks, of which one counts the call.
    void bounded(ServedRow& row, const model::OwnMessages& messages, const topology::Job& job,
                 const topology::Job& world, topology::Rank world_rank, bool counts);
    void note(const std::string& text);
    /// Single copies that the system refused, so that the payload took the fallback path.
    Counter refused_reads;
    TopologyReport& topologies() { return topologies_; }

    /// Collective over `comm`: merges all ranks' counts at rank 0 along a binomial tree. The size of messages grows
    /// with the kinds of calls, not with ranks. `world`: the job of all ranks, the same on all, or null on all.
    void merge_to_root(MPI_Comm comm, const topology::Job* world);

    /// `aborted_by`: the rank whose counts these are alone, since it called MPI_Abort; -1: those of all ranks.
    base::Json to_json(int ranks, double seconds, const base::Json& job, int aborted_by = -1) const;
    /// The page, at most 80 columns.
    std::string page(int ranks, double seconds, int aborted_by = -1) const;

  private:
    using ServedKey = std::tuple<std::uint8_t, int, std::string, bool>;  ///< function, size class, algorithm, blocking
    using RefusedKey = std::tuple<std::uint8_t, std::uint8_t, std::string>;  ///< function, refusal, detail

    bool has_exchanges() const;
    base::Json pack() const;
    void absorb(const base::Json& other);
    void settle(const model::RoundOrder& order, std::int32_t place, std::int32_t count);

    mutable std::mutex mutex_;
    std::map<ServedKey, ServedRow> served_;
    std::map<RefusedKey, RefusedRow> refused_;
    using ComparedKey = std::tuple<std::uint8_t, int, std::string>;  ///< function, size class, algorithm
    std::map<ComparedKey, ComparisonRow> compared_;
    std::map<std::string, Calls> by_hosts_;
    std::map<std::string, int> notes_;
    TopologyReport topologies_;
};

}  // namespace palmette::runtime
