// A buffer of the caller's as a plan sees it: bytes without holes, block by block.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "palmette/execute/binding.hpp"
#include "palmette/runtime/data/call_arguments.hpp"
#include "palmette/runtime/data/datatype.hpp"
#include "palmette/runtime/data/operation.hpp"

namespace palmette::runtime {

/// One of these shapes: nothing, one block, or a block for each rank. Data with holes goes through a staging buffer,
/// packed; elements of a reduction keep their extent there.
class CallerBuffer {
  public:
    void clear();
    /// The setters return false when the arguments are the MPI's to judge. One block:
    bool one(const Side& side) { return one(side.buffer, side.count, side.type); }
    /// The vector of a reduction. `operation` must be valid and outlive this.
    void elements(const void* buffer, std::int64_t count, const Operation& operation, MPI_Datatype type);
    /// A block for each rank: one after the other, or each at its displacement. Arrays must stay alive.
    bool blocks(const Side& side, int ranks);
    /// Blocks of a reduction's elements, one after the other; `counts` by rank, or `count` each.
    void element_blocks(const void* buffer, Counts counts, std::int64_t count, const Operation& operation,
                        MPI_Datatype type, int ranks);

    /// Memory of ours in place of an argument that is wrong at this rank alone, so that the others needn't wait for it:
    /// a block of `bytes`, or one for each of `ranks`.
    void stand_in(std::int64_t bytes, int ranks = 0);
    /// The same with lists, as bind needs them where blocks have lengths of their own: all empty.
    void stand_in_of_lists(int ranks);

    /// From the opening on nothing of the caller's is read or written any more: the input has been copied, and what
    /// comes in is thrown away.
    void detach() {
        keep_lists();
        forced_ = true;
    }
    void detach_and_discard() {
        detach();
        stands_in_ = true;
    }

    /// Copies the caller's arrays of counts, displacements and types: the program may change or free them after it has
    /// made a persistent operation.
    void keep_lists();

    /// The data goes through the buffer even if it has no holes: for input that would be overwritten.
    void force_room() { forced_ = true; }

    /// Where the caller has a block.
    const void* place(int rank) const { return typed(rank); }

    /// As the caller gave them; the type where all blocks have one.
    const void* buffer() const { return buffer_; }
    std::int64_t count(int rank = 0) const { return counts_ ? counts_[rank] : count_; }
    MPI_Datatype type() const { return type_; }

    std::int64_t bytes(int rank = 0) const { return count(rank) * unit(rank); }
    std::int64_t total() const { return total_; }

    /// Finds out how the data lies; before anything below. Returns an MPI code.
    int prepare();
    /// Sets `base`, where the plan finds the data. `skip`: a block that is not there to read (MPI_IN_PLACE), -1 for
    /// none.
    int open_to_read(MPI_Comm comm, int skip, char*& base);
    /// Sets `base`, where the plan leaves the data.
    void open_to_write(char*& base);
    /// After the plan has written: brings what went through the buffer to the caller, all but block `skip`.
    int close(const char* base, MPI_Comm comm, int skip);
    /// One block of the caller's to where the plan reads it, where data goes through the buffer.
    int bring(int rank, char* base, MPI_Comm comm) const;
    /// Where the plan finds a block, from the base on.
    std::int64_t offset(int rank) const {
        if (!offsets_.empty()) return offsets_[static_cast<std::size_t>(rank)];
        return ranks_ > 0 ? rank * bytes(0) : 0;
    }
    /// Lists by rank for `bind`, empty where blocks are uniform; valid as long as this lives.
    Layout::Ranks ranks() const {
        return {lengths_.empty() ? nullptr : lengths_.data(), offsets_.empty() ? nullptr : offsets_.data()};
    }
    bool is_staged() const { return forced_ || !dense_; }

  private:
    bool one(const void* buffer, std::int64_t count, MPI_Datatype type);
    bool blocks_of_types(const Side& side, int ranks);
    const TypeShape& shape(int rank) const {
        return shapes_.empty() ? shape_ : shapes_[static_cast<std::size_t>(rank)];
    }
    MPI_Datatype type_of(int rank) const { return types_ ? types_[rank] : type_; }
    /// Bytes that an element takes in the plan's memory.
    std::int64_t unit(int rank) const { return operation_ ? operation_->layout().extent : shape(rank).size; }
    char* typed(int rank) const;
    int put(int rank, char* base, MPI_Comm comm) const;
    int take(int rank, const char* base, MPI_Comm comm) const;
    int blocks_there() const { return ranks_ > 0 ? ranks_ : present_ ? 1 : 0; }
    char* make_staging();

    char* buffer_ = nullptr;
    bool present_ = false;
    bool forced_ = false;
    bool stands_in_ = false;
    bool dense_ = true;
    int ranks_ = 0;  ///< 0: one block
    std::int64_t count_ = 0;
    Counts counts_, displacements_;
    const MPI_Datatype* types_ = nullptr;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    const Operation* operation_ = nullptr;
    TypeShape shape_;
    std::vector<TypeShape> shapes_;  ///< with types of their own
    std::vector<std::int64_t> kept_counts_, kept_displacements_;
    std::vector<MPI_Datatype> kept_types_;
    std::int64_t total_ = 0;
    std::vector<std::int64_t> lengths_, offsets_;  ///< only with counts of their own
    std::vector<std::int64_t> starts_;             ///< in the caller's memory, with counts and no displacements
    std::vector<char> staging_;                    ///< kept between calls
    mutable std::vector<char> packed_;
};

}  // namespace palmette::runtime
