// What this process has sent to whom, in its section: bytes and messages by rank of MPI_COMM_WORLD, where the program
// says which bytes go to which rank. Memory grows with the ranks that it has sent to and the members of the
// communicators that it exchanges on, not with the job.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "palmette/record/blocks.hpp"
#include "palmette/trace/format.hpp"

namespace palmette::record {

/// What each start of a persistent request sends.
struct PersistentSend {
    trace::SentBy by = trace::SentBy::messages;
    std::vector<std::pair<trace::PeerEntry*, std::uint64_t>> parts;
};

/// The ranks in MPI_COMM_WORLD of a communicator's group, or of an inter-communicator's other one; below 0: not there.
/// Needs a world.
std::vector<int> members_of(MPI_Comm comm, bool remote);

/// The entries of other processes, found by communicator and rank. Safe to use from several threads.
class PeerTable {
  public:
    static constexpr std::uint32_t most = 1U << 16U;

    void attach(trace::SectionHeader& section);
    /// Reads the group of MPI_COMM_WORLD, after MPI_Init. Local.
    void know_world();

    /// Whoever has rank `dest` in the communicator, in its remote group of an inter-communicator; null: nobody has.
    /// Local.
    trace::PeerEntry* at(MPI_Comm comm, int dest);
    /// Destinations of this rank's blocks in a collective over neighbours; null: MPI_PROC_NULL, whose block goes to
    /// nobody. Local. Valid until `comm` is freed.
    const std::vector<trace::PeerEntry*>& neighbours(MPI_Comm comm);
    /// `use(entry, bytes)` for each block that goes to somebody.
    template <class Use>
    void for_neighbours(MPI_Comm comm, const Blocks& blocks, Use use) {
        std::size_t block = 0;
        for (trace::PeerEntry* const to : neighbours(comm)) {
            if (to) use(*to, blocks.bytes(block));
            ++block;
        }
    }
    /// `use(entry, bytes)` for each block of an MPI_Alltoall, Alltoallv or Alltoallw that has bytes for another
    /// process. For none where every order of ranks sends as much over every link: blocks all alike among all ranks of
    /// MPI_COMM_WORLD. With alltoallv and w blocks may differ, so that those count there, too.
    template <class Use>
    void for_members(MPI_Comm comm, const Blocks& blocks, Use use) {
        if (blocks.alike() && comm == MPI_COMM_WORLD) return;  // needs no list of members
        const Members& members = members_on(comm);
        if (blocks.alike() && members.are_all_of_world) return;
        for (std::size_t i = 0; i < members.entries.size(); ++i)
            if (trace::PeerEntry* const to = members.entries[i])
                if (const std::uint64_t bytes = blocks.bytes(i); bytes > 0) use(*to, bytes);
    }
    void forget(MPI_Comm comm);

  private:
    struct Members {
        std::vector<trace::PeerEntry*> entries;  ///< by rank; null: this process
        bool are_all_of_world = false;           ///< in any order
    };
    struct OnCommunicator {
        std::unordered_map<int, trace::PeerEntry*> by_rank;
        std::optional<std::vector<trace::PeerEntry*>> neighbours;
        std::optional<Members> members;
    };
    trace::PeerEntry* of_world(int rank);
    trace::PeerEntry* find(MPI_Comm comm, int dest);
    const Members& members_on(MPI_Comm comm);

    std::mutex mutex_;
    trace::SectionHeader* section_ = nullptr;
    trace::PeerEntry* entries_ = nullptr;
    MPI_Group world_ = MPI_GROUP_NULL;
    int own_rank_ = 0, world_size_ = 0;
    std::unordered_map<int, trace::PeerEntry*> by_world_rank_;
    std::unordered_map<std::uint64_t, OnCommunicator> communicators_;  ///< by handle
};

}  // namespace palmette::record
