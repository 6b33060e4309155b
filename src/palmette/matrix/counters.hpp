// Communication matrix, this process's row: bytes and messages sent to each rank of MPI_COMM_WORLD, and apart from them
// what went to each in all-to-all exchanges. Its memory grows with the ranks that it has sent to and the members of the
// communicators that it exchanges on, not with the job.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "palmette/base/outer_calls.hpp"
#include "palmette/matrix/blocks.hpp"

namespace palmette::matrix {

struct Cell {
    std::uint64_t bytes = 0;
    std::uint64_t messages = 0;
};

/// What one start of a persistent request sends: bytes to each of some cells.
using Sending = std::vector<std::pair<Cell*, std::uint64_t>>;

/// Every call may come from several threads at once. Nothing is counted before `start`.
class Counters {
  public:
    static Counters& instance();

    /// Local. Begins to count; once, after MPI_Init.
    void start();
    /// Ends counting; before MPI_Finalize.
    void stop() { counting_.store(false, std::memory_order_release); }
    bool counting() const { return counting_.load(std::memory_order_acquire); }
    /// Of this process's; cheap where nothing is counted.
    static bool any() { return any_.load(std::memory_order_acquire); }

    /// `count` elements went to rank `dest` of the communicator, the remote group's of an inter-communicator.
    /// MPI_PROC_NULL counts nothing.
    void sent(MPI_Comm comm, int dest, std::int64_t count, MPI_Datatype type);
    /// A neighbourhood collective: a block to each neighbour.
    void sent_to_neighbours(MPI_Comm comm, const Blocks& blocks);
    /// MPI_Alltoall, Alltoallv or Alltoallw: a block to each rank of the communicator. Counts those with bytes to other
    /// processes. Not counted where every order of ranks sends as much over every link: blocks all alike among all
    /// ranks of MPI_COMM_WORLD. With alltoallv and w blocks may differ, so that those count there, too.
    void exchanged(MPI_Comm comm, const Blocks& blocks);

    /// The same for requests that are started later, maybe several times.
    void keep(MPI_Request request, MPI_Comm comm, int dest, std::int64_t count, MPI_Datatype type);
    void keep_neighbours(MPI_Request request, MPI_Comm comm, const Blocks& blocks);
    void keep_exchange(MPI_Request request, MPI_Comm comm, const Blocks& blocks);
    /// It was known as `before`, and the MPI may have given it another handle.
    void started(MPI_Request before, MPI_Request request);
    void forget(MPI_Request request);

    void one_sided() { one_sided_.fetch_add(1, std::memory_order_relaxed); }

    /// After `stop`.
    const std::map<int, Cell>& by_world_rank() const { return by_world_rank_; }
    const std::map<int, Cell>& exchanged_by_world_rank() const { return exchanged_; }
    /// To processes outside of MPI_COMM_WORLD: spawned ones, or of another job.
    const Cell& outside() const { return outside_; }
    std::uint64_t one_sided_calls() const { return one_sided_.load(); }

  private:
    struct Peers;
    Peers* peers_of(MPI_Comm comm);
    Cell* cell_of(MPI_Comm comm, int dest);
    const std::vector<Cell*>& neighbours_of(MPI_Comm comm);
    const Peers& members_of(MPI_Comm comm);
    void add(const Sending& sending);
    Sending to_neighbours(MPI_Comm comm, const Blocks& blocks);
    Sending to_members(MPI_Comm comm, const Blocks& blocks);

    static inline std::atomic<bool> any_{false};
    std::atomic<bool> counting_{false};
    std::atomic<std::uint64_t> one_sided_{0};
    std::mutex mutex_;
    std::map<int, Cell> by_world_rank_;  // cells have stable addresses
    std::map<int, Cell> exchanged_;
    Cell outside_;
    std::map<MPI_Request, Sending> persistent_;
    MPI_Group world_ = MPI_GROUP_NULL;
    int own_rank_ = 0;
    int keyval_ = MPI_KEYVAL_INVALID;
};

/// True for the outermost call of the program's on this stack, while messages are counted: an MPI may implement one
/// function by another. In the function that the program calls, with its return address and frame address.
class Outermost {
  public:
    Outermost(const void* return_address, const void* frame);
    Outermost(const Outermost&) = delete;
    Outermost& operator=(const Outermost&) = delete;
    ~Outermost();
    explicit operator bool() const { return counts_; }

  private:
    base::OuterCalls::Place place_;
    bool counts_;
};

/// Persistent requests that a call starts. `List`: of MPI_Request by index.
class Starting {
  public:
    template <class List>
    Starting(bool counts, int count, List list) {
        for (int i = 0; counts && list && i < count; ++i) before_.push_back(list[i]);
    }
    template <class List>
    void ended(List list) const {
        for (std::size_t i = 0; i < before_.size(); ++i)
            Counters::instance().started(before_[i], list[static_cast<int>(i)]);
    }

  private:
    std::vector<MPI_Request> before_;
};

}  // namespace palmette::matrix
