// The caller's buffers as a plan sees them: bytes without holes, block by block.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "palmette/runtime/binding.hpp"
#include "palmette/runtime/datatype.hpp"

namespace palmette::runtime {

/// The buffer that holds this rank's own block. A type with holes goes through `room`.
class OneBlock {
  public:
    /// False when the arguments are the MPI's to judge.
    bool set(const void* buffer, int count, MPI_Datatype type);
    std::int64_t bytes() const { return count_ * shape_.size; }

    /// Each returns an MPI code and sets `base`, where the plan finds the block or leaves it.
    int open_to_read(std::vector<char>& room, MPI_Comm comm, char*& base);
    int open_to_write(std::vector<char>& room, char*& base);
    /// After a plan has written: brings what went through `room` to the caller.
    int close(const char* base, MPI_Comm comm);

  private:
    char* buffer_ = nullptr;
    std::int64_t count_ = 0;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    TypeShape shape_;
};

/// The buffer that holds the blocks of all ranks.
class AllBlocks {
  public:
    /// Blocks of `count` elements one after the other. False when the arguments are the MPI's to judge.
    bool set(const void* buffer, int count, MPI_Datatype type, int ranks);
    /// Blocks of their own counts and displacements, which must stay alive.
    bool set(const void* buffer, const int* counts, const int* displacements, MPI_Datatype type, int ranks);

    std::int64_t bytes(int rank) const { return count(rank) * shape_.size; }
    std::int64_t total() const { return total_; }

    /// Finds out how the blocks lie; before anything below. Returns an MPI code.
    int prepare();

    /// As in OneBlock. `skip`: a block that is not the caller's to give (MPI_IN_PLACE), -1 for none.
    int open_to_read(std::vector<char>& room, MPI_Comm comm, int skip, char*& base);
    int open_to_write(std::vector<char>& room, char*& base);
    /// Where the plan finds a block, from the base on.
    std::int64_t offset(int rank) const {
        return offsets_.empty() ? rank * bytes(rank) : offsets_[static_cast<std::size_t>(rank)];
    }
    /// With MPI_IN_PLACE a rank's own block is in the caller's buffer already: brings it to where the plan reads it.
    int bring(int rank, char* base, MPI_Comm comm) const;
    int close(const char* base, MPI_Comm comm, int skip) const;

    /// Lengths and offsets for `bind`; valid as long as this lives.
    Layout layout(plan::Buffer side) const;

  private:
    std::int64_t count(int rank) const { return counts_ ? counts_[rank] : count_; }
    char* typed(int rank) const;
    bool through_room() const { return !shape_.dense; }

    char* buffer_ = nullptr;
    int ranks_ = 0;
    std::int64_t count_ = 0;
    const int* counts_ = nullptr;
    const int* displacements_ = nullptr;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    TypeShape shape_;
    std::int64_t total_ = 0;
    std::vector<std::int64_t> lengths_, offsets_;  ///< only with counts of their own
};

}  // namespace palmette::runtime
