// Elements of any datatype in memory, and which of their bytes are data.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace test {

/// Room for `count` elements of a type with a margin around, and the address that MPI wants for them.
class Elements {
  public:
    Elements(MPI_Datatype type, int count, char filling) : type_(type), count_(count) {
        MPI_Aint lower = 0, true_extent = 0;
        PMPI_Type_get_extent(type, &lower, &extent_);
        PMPI_Type_get_true_extent(type, &lower, &true_extent);
        const MPI_Aint last = count > 0 ? (count - 1) * extent_ : 0;
        first_ = margin - std::min<MPI_Aint>(0, last) - lower;
        bytes_.assign(static_cast<std::size_t>((last < 0 ? -last : last) + true_extent + 2 * margin), filling);
    }

    char* at() { return bytes_.data() + first_; }
    std::vector<char>& bytes() { return bytes_; }
    const std::vector<char>& bytes() const { return bytes_; }
    /// Where element `i` begins, counted in bytes().
    std::size_t offset(int i) const { return static_cast<std::size_t>(first_ + i * extent_); }
    int count() const { return count_; }
    MPI_Datatype type() const { return type_; }

    /// For each byte whether it is data: those that arrive when ones are unpacked.
    std::vector<char> data() const {
        Elements copy(type_, count_, 0);
        int size = 0, position = 0;
        PMPI_Type_size(type_, &size);
        const std::vector<char> ones(static_cast<std::size_t>(size) * static_cast<std::size_t>(count_), '\xff');
        PMPI_Unpack(ones.data(), static_cast<int>(ones.size()), &position, copy.at(), count_, type_, MPI_COMM_SELF);
        return copy.bytes();
    }

  private:
    static constexpr MPI_Aint margin = 64;
    MPI_Datatype type_;
    int count_;
    MPI_Aint extent_ = 0;
    MPI_Aint first_ = 0;
    std::vector<char> bytes_;
};

}  // namespace test
