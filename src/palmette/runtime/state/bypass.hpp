// Fast path: calls known to be left to the MPI cost one cache line.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>

#include "palmette/runtime/data/counts.hpp"
#include "palmette/runtime/observe/report.hpp"
#include "palmette/select/table.hpp"

namespace palmette::runtime {

/// Caches the decision for one function's last call that was left to the MPI, so that the next such call reads one
/// cache line. A program that computes between its collectives has evicted our data from its caches: then every line
/// counts, and reading the communicator's state costs 100 ns.
///
/// Open only where nothing else has to be checked: no threads that call MPI concurrently, no checks of arguments, no
/// outstanding operation in the background.
///
/// Calls that are left to the MPI until a pair of them is compared go the same way: those with the arguments that their
/// plan depends on, and as many as come before the pair. All ranks must begin it at the same call, so they are counted
/// in the comparison, before the next call that doesn't go this way.
class alignas(64) Bypass {
  public:
    /// Whether a call on `comm` is the MPI's whatever its other arguments; counts it.
    bool takes(MPI_Comm comm) {
        if (comm != comm_ || !open_ || !all_calls_ || calls_ == limit_) return false;
        ++calls_;
        return true;
    }
    /// Whether a call with blocks of `count` elements of `type` is the MPI's; counts it.
    bool takes(MPI_Comm comm, std::int64_t count, MPI_Datatype type, MPI_Op op, int root) {
        if (comm != comm_ || !open_) return false;
        if (!all_calls_ && (type != type_ || out_of_range(count))) return false;
        if (limit_ != unlimited && (op != op_ || root != root_ || calls_ == limit_)) return false;
        ++calls_;
        return true;
    }
    /// Whether a call with a count for each rank is the MPI's; counts it. The mean of the counts decides, or their sum
    /// where there is a limit.
    bool takes(MPI_Comm comm, Counts counts, MPI_Datatype type, MPI_Op op) {
        if (comm != comm_ || !open_) return false;
        if (limit_ != unlimited) return takes(comm, sum_of(counts, ranks_), type, op, 0);
        if (!all_calls_ && (type != type_ || out_of_range(mean_count(counts, ranks_)))) return false;
        ++calls_;
        return true;
    }

    /// A call that it has taken is not one that it can take: counts it no more. Returns false.
    bool leaves() {
        --calls_;
        return false;
    }

    struct CommInfo {
        MPI_Comm comm;
        int ranks;
        bool leads;
    };
    /// From now on takes all calls on that communicator.
    void open(const CommInfo& comm_info, Report::RefusedRow& row);
    /// From now on takes calls with `least` to `most` elements of `type`, which must be predefined: other handles may
    /// be reused.
    void open(const CommInfo& comm_info, Report::RefusedRow& row, MPI_Datatype type, std::int64_t least,
              std::int64_t most);
    /// The arguments that a plan depends on; `type`, which must be predefined, and `count` mean nothing for a barrier.
    /// `count`: of all ranks together where the function takes one for each.
    struct Arguments {
        std::int64_t count;
        MPI_Datatype type;
        MPI_Op op;
        int root;
    };
    /// Takes the next calls with these arguments, at most `limit`, and counts them in `counted`, too.
    void open(const CommInfo& comm_info, Report::RefusedRow& row, const Arguments& arguments, std::int64_t limit,
              std::int64_t& counted);
    /// Must be called before a call that it hasn't taken looks at what it counts in.
    void settle() {
        if (limit_ != unlimited) close();
    }
    /// Takes nothing any more; adds its count to the report.
    void close();

  private:
    static constexpr std::int64_t unlimited = -1;

    bool out_of_range(std::int64_t count) const {
        return static_cast<std::uint64_t>(count) - static_cast<std::uint64_t>(least_) > span_;
    }
    bool may_open(const CommInfo& comm_info, Report::RefusedRow& row);

    MPI_Comm comm_{};
    MPI_Datatype type_{};
    std::int64_t least_ = 1;
    std::uint64_t span_ = 0;  ///< largest count less the least
    std::int64_t calls_ = 0, limit_ = unlimited;
    MPI_Op op_{};
    int root_ = 0;
    bool open_ = false, all_calls_ = false, leads_ = false;
    // In the next cache line.
    int ranks_ = 0;
    Report::RefusedRow* row_ = nullptr;
    std::int64_t* counted_ = nullptr;
};

/// One for each function's blocking form.
extern constinit std::array<Bypass, select::all_function_count> bypasses;
inline Bypass& bypass_of(select::Function function) { return bypasses[static_cast<std::size_t>(function)]; }

/// Must be called whenever something changes that calls would have to check: a communicator is freed, an operation
/// starts in the background, the report is written.
void close_bypasses();

}  // namespace palmette::runtime
