// Fast path: calls known to be left to the MPI cost one cache line.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>

#include "palmette/runtime/data/counts.hpp"
#include "palmette/runtime/observe/report.hpp"
#include "palmette/select/table.hpp"

namespace palmette::runtime {

/// What is known of one function's last call that was left to the MPI, so that the next such call looks at one cache
/// line. A program that computes between its collectives finds nothing of ours in its caches: then every line counts,
/// and a look at the communicator's state costs 100 ns.
///
/// Open only where nothing else would have to be looked at: no threads that call MPI at the same time, no checks of
/// arguments, no operation in the background.
class alignas(64) Bypass {
  public:
    /// Whether a call on `comm` is the MPI's whatever its other arguments; counts it.
    bool takes(MPI_Comm comm) {
        if (comm != comm_ || !open_ || !any_) return false;
        ++calls_;
        return true;
    }
    /// Whether a call with blocks of `count` elements of `type` is the MPI's; counts it.
    bool takes(MPI_Comm comm, std::int64_t count, MPI_Datatype type) {
        if (comm != comm_ || !open_) return false;
        if (!any_ && (type != type_ || beyond(count))) return false;
        ++calls_;
        return true;
    }
    /// The same for a function that takes a count for each rank: their mean decides.
    bool takes(MPI_Comm comm, Counts counts, MPI_Datatype type) {
        if (comm != comm_ || !open_) return false;
        if (!any_ && (type != type_ || beyond(mean_count(counts, ranks_)))) return false;
        ++calls_;
        return true;
    }

    struct Whose {
        MPI_Comm comm;
        int ranks;
        bool leads;
    };
    /// From now on takes all calls of that communicator's.
    void open(const Whose& whose, Report::Refused& row);
    /// From now on takes calls with `least` to `most` elements of `type`, which must be predefined: other handles are
    /// used again.
    void open(const Whose& whose, Report::Refused& row, MPI_Datatype type, std::int64_t least, std::int64_t most);
    /// Takes nothing; the report gets what was counted.
    void close();

  private:
    bool beyond(std::int64_t count) const {
        return static_cast<std::uint64_t>(count) - static_cast<std::uint64_t>(least_) > span_;
    }
    bool may_open(const Whose& whose, Report::Refused& row);

    MPI_Comm comm_{};
    MPI_Datatype type_{};
    std::int64_t least_ = 1;
    std::uint64_t span_ = 0;  ///< largest count less the least
    std::int64_t calls_ = 0;
    Report::Refused* row_ = nullptr;
    int ranks_ = 0;
    bool open_ = false, any_ = false, leads_ = false;
};

/// One for each function's blocking form.
extern constinit std::array<Bypass, select::function_count> bypasses;
inline Bypass& bypass_of(select::Function function) { return bypasses[static_cast<std::size_t>(function)]; }

/// Whenever something changes that calls would have to look at: a communicator goes, an operation starts in the
/// background, the report is written.
void close_bypasses();

}  // namespace palmette::runtime
