// A caller's buffer as a plan sees it: contiguous bytes, block by block.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "palmette/execute/binding.hpp"
#include "palmette/runtime/data/call_arguments.hpp"
#include "palmette/runtime/data/datatype.hpp"
#include "palmette/runtime/data/operation.hpp"

namespace palmette::runtime {

/// One of these shapes: nothing, one block, or a block for each rank. Non-contiguous data is packed into a staging
/// buffer; elements of a reduction keep their extent there.
class CallerBuffer {
  public:
    void clear();
    /// The setters return false when the MPI must check the arguments. One block:
    bool one(const Side& side) { return one(side.buffer, side.count, side.type); }
    /// The vector of a reduction. `operation` must be valid and outlive this.
    void elements(const void* buffer, std::int64_t count, const Operation& operation, MPI_Datatype type);
    /// A block for each rank: one after the other, or each at its displacement. Arrays must stay alive.
    bool blocks(const Side& side, int ranks);
    /// Blocks of a reduction's elements, one after the other; `counts` by rank, or `count` each.
    void element_blocks(const void* buffer, Counts counts, std::int64_t count, const Operation& operation,
                        MPI_Datatype type, int ranks);

    /// Memory of palmette's as placeholder for an argument that is erroneous at this rank only, so that the other ranks
    /// needn't wait for it: a block of `bytes`, or one for each of `ranks`.
    void use_placeholder(std::int64_t bytes, int ranks = 0);
    /// A buffer whose blocks are all empty, with the lists that `bind` needs where lengths differ by rank.
    void use_placeholder_lists(int ranks);

    /// After opening, the caller's memory is neither read nor written any more: the input has been copied, and received
    /// data is discarded.
    void detach() {
        copy_lists();
        staging_forced_ = true;
    }
    void detach_and_discard() {
        detach();
        is_placeholder_ = true;
    }

    /// Copies the caller's arrays of counts, displacements and types: the program may change or free them after it has
    /// made a persistent operation.
    void copy_lists();

    /// Stages the data even if it is contiguous: for input that would be overwritten.
    void force_staging() { staging_forced_ = true; }

    /// Address of a block in the caller's memory.
    const void* address_of(int rank) const { return typed(rank); }

    /// As the caller gave them; the type where all blocks have one.
    const void* buffer() const { return buffer_; }
    std::int64_t count(int rank = 0) const { return counts_ ? counts_[rank] : count_; }
    MPI_Datatype type() const { return type_; }

    std::int64_t bytes(int rank = 0) const { return count(rank) * unit(rank); }
    std::int64_t total() const { return total_; }

    /// Determines the layout of the data; must precede anything below. Returns an MPI code.
    int prepare();
    /// Sets `base`, where the plan finds the data. `skip`: a block that is not there to read (MPI_IN_PLACE), -1 for
    /// none.
    int open_to_read(MPI_Comm comm, int skip, char*& base);
    /// Sets `base`, where the plan leaves the data, or finds it after blocks have been packed one by one.
    void open_to_write(char*& base);
    /// After the plan has written: unpacks staged data to the caller's memory, all but block `skip`.
    int close(const char* base, MPI_Comm comm, int skip);
    /// Packs one block of the caller's to where the plan reads it, where data is staged.
    int pack_if_staged(int rank, char* base, MPI_Comm comm) const;
    /// Unpacks a staged block to the caller's memory.
    int unpack_if_staged(int rank, const char* base, MPI_Comm comm) const;
    /// Ranks that have a block in it; 0: none has one of its own.
    int ranks_of_blocks() const { return ranks_; }
    /// Where the plan finds a block, from the base on.
    std::int64_t offset(int rank) const {
        if (!offsets_.empty()) return offsets_[static_cast<std::size_t>(rank)];
        return ranks_ > 0 ? rank * bytes(0) : 0;
    }
    /// Lists by rank for `bind`, empty where blocks are uniform; valid as long as this lives.
    execute::Layout::Ranks ranks() const {
        return {lengths_.empty() ? nullptr : lengths_.data(), offsets_.empty() ? nullptr : offsets_.data()};
    }
    bool is_staged() const { return staging_forced_ || !dense_; }

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
    int pack_block(int rank, char* base, MPI_Comm comm) const;
    int unpack_block(int rank, const char* base, MPI_Comm comm) const;
    int block_count() const { return ranks_ > 0 ? ranks_ : present_ ? 1 : 0; }
    char* make_staging();

    char* buffer_ = nullptr;
    bool present_ = false;
    bool staging_forced_ = false;
    bool is_placeholder_ = false;
    bool dense_ = true;
    int ranks_ = 0;  ///< 0: one block
    std::int64_t count_ = 0;
    Counts counts_, displacements_;
    const MPI_Datatype* types_ = nullptr;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    const Operation* operation_ = nullptr;
    TypeShape shape_;
    std::vector<TypeShape> shapes_;  ///< by rank, where types differ
    std::vector<std::int64_t> kept_counts_, kept_displacements_;
    std::vector<MPI_Datatype> kept_types_;
    std::int64_t total_ = 0;
    std::vector<std::int64_t> lengths_, offsets_;  ///< only where counts differ by rank
    std::vector<std::int64_t> starts_;             ///< in the caller's memory, with counts and no displacements
    std::vector<char> staging_;                    ///< kept between calls
    mutable std::vector<char> packed_;
};

}  // namespace palmette::runtime
