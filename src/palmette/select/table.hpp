// The decision table: which algorithm serves which call, as human-readable, editable data.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmette/base/json.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/select/by_model.hpp"

namespace palmette::select {

using collectives::Spec;
using plan::Collective;
using topology::Job;

/// A function by its name in tables and settings, and the collective whose plans it shares; `composed`: plans of its
/// own.
struct FunctionRow {
    const char* name;
    Collective collective;
};

// The MPI functions that are served, `Function`, v forms separately: their ranks don't know each other's sizes.
// function_count: those that tables and settings choose for, the first ones; all_function_count: with neighbourhood
// collectives, which come after them.
#include "palmette/select/functions.hpp"

constexpr bool is_neighbourhood(Function function) { return function >= Function::neighbor_allgather; }

const char* name_of(Function function);
/// The function of that name for which tables choose. Throws base::Error that lists the names.
Function function_named(std::string_view name);
/// The function of that name, with or without tables. Throws base::Error that lists the names.
Function any_function_named(std::string_view name);
Collective collective_of(Function function);
/// True where no rank, or the root alone, knows all sizes.
bool sizes_unknown(Function function);
/// True where all blocks of a call have the same size, known to all ranks.
bool sizes_alike(Function function);

/// One row. It matches when all its limits hold; where the sizes are unknown only rows without size limits do.
struct Row {
    Function function = Function::gather;
    std::int64_t min_bytes = 0;  ///< Request::block_bytes (the mean block for allgatherv and reduce_scatter)
    std::int64_t max_bytes = INT64_MAX;
    std::int32_t min_ranks = 2;
    std::int32_t max_ranks = INT32_MAX;
    std::int32_t min_nodes = 1;
    std::int32_t max_nodes = INT32_MAX;
    std::int32_t min_ranks_per_node = 1;  ///< ranks on the fullest node
    std::int32_t max_ranks_per_node = INT32_MAX;
    std::int32_t min_switches = 1;  ///< lower bound of switch_count()
    std::int32_t max_switches = INT32_MAX;
    std::optional<bool> even_switches;  ///< set: has_even_switches() must be so
    double min_latency_s = 0;           ///< above 0: lower limit on slowest_latency(), where known
    double max_latency_s =
        std::numeric_limits<double>::infinity();  ///< upper limit on the same; finite: only where it is known
    double min_rate = 0;  ///< above 0: lower limit on the rate of the slowest link of a node, in bytes per second
    double max_rate = std::numeric_limits<double>::infinity();  ///< finite: only where it is known
    double min_load = 0;                 ///< above 0: lower limit on the load of the most loaded link, where known
    std::string mpi;                     ///< the MPI underneath: mpich, openmpi or impi; empty: any
    std::optional<bool> scattered;       ///< set: rank order and topology order must differ (true) or agree (false)
    std::optional<bool> oversubscribed;  ///< set: the ranks of some node outnumber its cores (true) or of none (false)
    std::optional<bool> blocking;        ///< set: only for blocking (true) or nonblocking and persistent calls (false)
    std::optional<Spec> algorithm;       ///< absent: leave the call to the MPI, or by_model
    bool by_model = false;               ///< take the candidate with the shortest estimated time; needs known sizes
    /// For a call left to the MPI: the largest measured ratio of palmette's time to the MPI's; 0: not measured.
    double mpi_ratio = 0;
    std::string why;     ///< explanation for users, one sentence
    std::string source;  ///< a key of Table::sources, or empty
};

/// Number of groups of the level `leaf` that the job spans; 1 where it lacks that level. A host without a leaf switch
/// counts as one.
std::int32_t switch_count(const Job& job);

/// Whether switch_count() is within the limits of the row.
bool fits_switches(const Row& row, const Job& job);

/// Whether no leaf has more than twice as many ranks as another one; true where there are none.
bool has_even_switches(const Job& job);

/// Whether slowest_latency() is within the limits of the row.
bool fits_latency(const Row& row, const Job& job);

/// Whether the rate of the slowest link of a node is within the limits of the row.
bool fits_rate(const Row& row, const Job& job);

/// Further properties of a call that a choice may depend on, besides job and request.
struct Surroundings {
    std::string mpi;  ///< as in Row, empty where unknown; rows limited to an MPI then don't match
    bool oversubscribed = false;
    bool blocking = true;
    bool compared = false;  ///< the program's own calls will show whether the MPI's own is faster, where that is wanted
    /// Algorithms that have lost to the MPI, in these surroundings: not chosen again. Null: none.
    const std::vector<std::string>* lost = nullptr;
    /// Simulates the candidates that the model prefers, see best_by_model; null: formulas decide.
    const Plays* plays = nullptr;
};

/// What a choice rests on.
enum class Basis : std::uint8_t {
    demand,       ///< the user forces it
    measurement,  ///< a row of the table, measured on such a job
    costs,        ///< the model, from known costs
    assumptions   ///< the model, from costs that are assumed: only where calls are compared
};
/// Whether a choice has to win a comparison before it serves.
constexpr bool is_on_trial(Basis basis) { return basis == Basis::costs || basis == Basis::assumptions; }

/// What was chosen and why.
struct Choice {
    std::optional<Spec> algorithm;  ///< absent: the MPI's own
    std::string reason;             ///< "table row 3: ..." or "forced by PALMETTE_FORCE"
    Basis basis = Basis::measurement;
};

class Table {
  public:
    /// The built-in table: built_in.json, compiled in.
    static const Table& built_in();
    /// Hash of that table.
    static std::uint64_t built_in_digest();
    /// From a JSON document {"format": "palmette-table", "version": 1, "rows": [...]}. Names of algorithms and their
    /// keys are checked here. Throws base::Error naming the row.
    static Table from_json(const base::Json& document);
    static Table from_file(const std::string& path);
    base::Json to_json() const;

    /// The first row that matches and whose algorithm doesn't refuse the job (by_model: some candidate doesn't). Where
    /// there is none, the candidate with the shortest estimated time if costs of the network are known or the calls are
    /// compared, else a fallback to the MPI's own. Depends only on what all ranks know, so that all choose the same.
    /// The request's collective must be that of the function.
    Choice choose(Function function, const Job& job, const plan::Request& request,
                  const Surroundings& surroundings = {}) const;
    /// True where all calls of a function on this job fall back to the MPI, whatever their size, so that they can be
    /// passed through unchecked.
    bool always_mpi(Function function, const Job& job, const Surroundings& surroundings) const;

    /// Range of block sizes, in bytes, both ends included, and the row that decides it.
    struct Range {
        std::int64_t from, to;
        std::size_t row;
    };
    /// The size ranges whose calls always fall back to the MPI, whatever the root and the operation; ascending, without
    /// zero bytes.
    std::vector<Range> mpi_ranges(Function function, const Job& job, const Surroundings& surroundings) const;

    /// "table row 3: why", as in Choice::reason; for a call left to the MPI with the slowdown that decided.
    std::string reason_of(std::size_t row) const;

    const std::vector<Row>& rows() const { return rows_; }
    /// Provenance of rows by source key: the machine and the run of the measurement.
    const std::vector<std::pair<std::string, std::string>>& sources() const { return sources_; }

  private:
    Table(std::vector<Row> rows, std::vector<std::pair<std::string, std::string>> sources)
        : rows_(std::move(rows)), sources_(std::move(sources)) {}
    Table() = default;

    std::vector<Row> rows_;
    std::vector<std::pair<std::string, std::string>> sources_;
};

/// True when ranks are not in topology order.
bool is_scattered(const Job& job);
/// The largest latency of the levels that tell the job's ranks apart; 0 where none is known.
double slowest_latency(const Job& job);
/// Load of the most loaded link out of a group (share that other traffic takes); 0 where none is known. Time:
/// O(groups).
double heaviest_load(const Job& job);

}  // namespace palmette::select
