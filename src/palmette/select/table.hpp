// The decision table: which algorithm serves which call, as data that people can read and change.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmette/base/json.hpp"
#include "palmette/collectives/registry.hpp"

namespace palmette::select {

using collectives::Spec;
using plan::Collective;
using topology::Job;

/// The MPI functions that are served, v forms on their own: their ranks know less of each other.
enum class Function : std::uint8_t {
    gather,
    scatter,
    allgather,
    gatherv,
    scatterv,
    allgatherv,
    bcast,
    reduce,
    allreduce,
    reduce_scatter,
    reduce_scatter_block,
    alltoall,
    alltoallv,
    alltoallw,
    barrier,
    scan,
    exscan
};
inline constexpr std::size_t function_count = 17;

const char* name_of(Function function);
/// Throws base::Error that lists the names.
Function function_named(std::string_view name);
Collective collective_of(Function function);
/// True where no rank, or the root alone, knows all sizes.
bool sizes_unknown(Function function);
/// True where all blocks of a call have one size, as all ranks know.
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
    std::int32_t min_switches = 1;  ///< of switch_count()
    std::int32_t max_switches = INT32_MAX;
    std::optional<bool> even_switches;  ///< set: has_even_switches() must be so
    double min_latency_s = 0;           ///< above 0: of the slowest level that the job spreads over, where it is known
    double max_latency_s =
        std::numeric_limits<double>::infinity();  ///< the same; finite: matches only where it is known
    double min_load = 0;  ///< above 0: of the fullest link, the share that other traffic takes, where it is known
    std::string mpi;      ///< the MPI underneath: mpich, openmpi or impi; empty: any
    std::optional<bool> scattered;       ///< set: rank order and topology order must differ (true) or agree (false)
    std::optional<bool> oversubscribed;  ///< set: the ranks of some node outnumber its cores (true) or of none (false)
    std::optional<bool> blocking;        ///< set: only for blocking (true) or nonblocking and persistent calls (false)
    std::optional<Spec> algorithm;       ///< absent: leave the call to the MPI, or by_model
    bool by_model = false;               ///< take the candidate that the model holds fastest; needs known sizes
    /// Of a call left to the MPI: palmette's time over the MPI's, the largest that was measured; 0: none was.
    double mpi_ratio = 0;
    std::string why;     ///< one sentence for people
    std::string source;  ///< a key of Table::sources, or empty
};

/// On how many groups of the level `leaf` the job spreads; 1 where it hasn't that level. A host beside the leaves
/// counts as one.
std::int32_t switch_count(const Job& job);

/// Whether that is a number that the row asks for.
bool fits_switches(const Row& row, const Job& job);

/// No leaf has more than twice as many ranks as another one; true where there are none.
bool has_even_switches(const Job& job);

/// Whether the slowest level that the job spreads over is one that the row asks for.
bool fits_latency(const Row& row, const Job& job);

/// What a choice may look at besides job and request.
struct Surroundings {
    std::string mpi;  ///< as in Row, empty where it is not known; rows that ask for one then don't match
    bool oversubscribed = false;
    bool blocking = true;
};

/// What was chosen and why.
struct Choice {
    std::optional<Spec> algorithm;  ///< absent: the MPI's own
    std::string reason;             ///< "table row 3: ..." or "forced by PALMETTE_GATHER"
};

class Table {
  public:
    /// The table that palmette brings: built_in.json, compiled.
    static const Table& built_in();
    /// Differs whenever that table does.
    static std::uint64_t built_in_digest();
    /// From a JSON document {"format": "palmette-table", "version": 1, "rows": [...]}. Names of algorithms and their
    /// keys are checked here. Throws base::Error naming the row.
    static Table from_json(const base::Json& document);
    static Table from_file(const std::string& path);
    base::Json to_json() const;

    /// The first row that matches and whose algorithm doesn't refuse the job (by_model: some candidate doesn't). Where
    /// there is none, the candidate that the model holds fastest if the job's costs were calibrated, else the MPI's
    /// own. Depends only on what all ranks know, so that all choose the same. The request's collective is the
    /// function's.
    Choice choose(Function function, const Job& job, const plan::Request& request,
                  const Surroundings& surroundings = {}) const;
    /// True where a function's calls on this job are the MPI's whatever their size: nothing else about them needs a
    /// look.
    bool always_mpi(Function function, const Job& job, const Surroundings& surroundings) const;

    /// Sizes of blocks, in bytes, both ends included, and the row that answers for them.
    struct Range {
        std::int64_t from, to;
        std::size_t row;
    };
    /// The sizes whose calls are surely the MPI's, whatever the root and the operation; smaller ones first, zero bytes
    /// left out.
    std::vector<Range> mpi_ranges(Function function, const Job& job, const Surroundings& surroundings) const;

    /// "table row 3: why", as choices have it; for a call left to the MPI with the loss that decided.
    std::string reason_of(std::size_t row) const;

    const std::vector<Row>& rows() const { return rows_; }
    /// Where rows come from, by the name that they give: the machine and the run that they were measured on.
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
/// Of the levels that tell the job's ranks apart; 0 where none is known.
double slowest_latency(const Job& job);
/// Of the links out of their groups the share that other traffic takes of the fullest one; 0 where none is known. Time:
/// that of the groups.
double heaviest_load(const Job& job);

}  // namespace palmette::select
