// Random datatypes that carry a given number of units, a unit being a short sequence of basic types, laid out in
// memory in ever other ways: two types with the same number of units have equal signatures, so that any of them can
// send what any other receives.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "rng.hpp"

namespace test {

/// A datatype with what is needed to make room for it. Frees what it made.
class Layout {
  public:
    Layout(MPI_Datatype type, bool owned, int units, std::string name)
        : type_(type), owned_(owned), units_(units), name_(std::move(name)) {
        if (owned_) PMPI_Type_commit(&type_);
        PMPI_Type_get_extent(type_, &lb_, &extent_);
        PMPI_Type_get_true_extent(type_, &true_lb_, &true_extent_);
    }
    Layout(const Layout&) = delete;
    Layout& operator=(const Layout&) = delete;
    Layout(Layout&& other) noexcept
        : type_(other.type_),
          owned_(other.owned_),
          units_(other.units_),
          name_(std::move(other.name_)),
          lb_(other.lb_),
          extent_(other.extent_),
          true_lb_(other.true_lb_),
          true_extent_(other.true_extent_) {
        other.owned_ = false;
    }
    Layout& operator=(Layout&&) = delete;
    ~Layout() {
        if (owned_) PMPI_Type_free(&type_);
    }

    MPI_Datatype type() const { return type_; }
    int units() const { return units_; }
    const std::string& name() const { return name_; }
    MPI_Aint extent() const { return extent_; }
    /// First byte of item `index`, counted from the buffer's address, and the byte behind its last.
    MPI_Aint begin(MPI_Aint index) const { return index * extent_ + true_lb_; }
    MPI_Aint end(MPI_Aint index) const { return index * extent_ + true_lb_ + true_extent_; }

  private:
    MPI_Datatype type_;
    bool owned_;
    int units_;
    std::string name_;
    MPI_Aint lb_ = 0, extent_ = 0, true_lb_ = 0, true_extent_ = 0;
};

/// The unit of a case. The same on all ranks up to its layout in memory, which is each rank's own.
class Unit {
  public:
    explicit Unit(Rng& shared) {
        static const std::vector<MPI_Datatype> basics = {MPI_CHAR,      MPI_SHORT,         MPI_INT,  MPI_LONG,
                                                         MPI_FLOAT,     MPI_DOUBLE,        MPI_BYTE, MPI_UNSIGNED_CHAR,
                                                         MPI_LONG_LONG, MPI_UNSIGNED_SHORT};
        const int members = shared.one_in(3) ? shared.between(2, 3) : 1;
        for (int i = 0; i < members; ++i) members_.push_back(shared.pick(basics));
    }

    int members() const { return static_cast<int>(members_.size()); }
    /// Bytes that a unit carries.
    int size_bytes() const {
        int sum = 0;
        for (MPI_Datatype member : members_) sum += bytes_of(member);
        return sum;
    }
    int plain_bytes() const { return bytes_of(members_[0]); }

    /// A type that carries `units` units. `items`: no buffer will hold more items of it than this.
    Layout layout(Rng& rng, int units, int items) const {
        if (units == 1 && members_.size() == 1 && rng.one_in(2)) return {members_[0], false, 1, "basic"};
        MPI_Datatype unit = place(rng);
        MPI_Aint lb = 0;
        MPI_Aint extent = 0;
        PMPI_Type_get_extent(unit, &lb, &extent);
        MPI_Datatype result = MPI_DATATYPE_NULL;
        std::string name;
        switch (rng.below(9)) {
            case 0:
                name = "contiguous";
                PMPI_Type_contiguous(units, unit, &result);
                break;
            case 1:
                name = "vector";
                PMPI_Type_vector(units, 1, rng.between(2, 3), unit, &result);
                break;
            case 2:
                name = "backward";  // a negative lower bound
                PMPI_Type_create_hvector(units, 1, -rng.between(1, 2) * extent, unit, &result);
                break;
            case 3:
                name = "indexed";
                result = scattered(rng, units, unit);
                break;
            case 4:
                name = "resized";
                result = resized(units, unit, -rng.between(0, 3) * extent, rng.between(1, 3) * extent);
                break;
            case 5:
                name = "interleaved";
                // Not for many items: the matrix would take more memory than the ranks of a test should.
                result = interleaved(units, unit, items < 5000 ? items : 0, extent);
                break;
            case 6:
                name = "hindexed";
                result = stretches(rng, units, unit, extent);
                break;
            case 7:
                name = "struct";
                result = halves(rng, units, unit, extent);
                break;
            default:
                name = "dup";
                {
                    MPI_Datatype contiguous = MPI_DATATYPE_NULL;
                    PMPI_Type_contiguous(units, unit, &contiguous);
                    PMPI_Type_dup(contiguous, &result);
                    PMPI_Type_free(&contiguous);
                }
                break;
        }
        PMPI_Type_free(&unit);
        return {result, true, units, name + std::to_string(members_.size()) + "x" + std::to_string(units)};
    }

    /// The first member alone, a basic type.
    Layout plain() const { return {members_[0], false, 1, "plain"}; }

    /// A type without any data.
    Layout nothing(Rng& rng) const {
        MPI_Datatype result = MPI_DATATYPE_NULL;
        PMPI_Type_contiguous(0, members_[0], &result);
        if (rng.one_in(2)) {
            MPI_Datatype wide = MPI_DATATYPE_NULL;
            PMPI_Type_create_resized(result, 0, 24, &wide);
            PMPI_Type_free(&result);
            result = wide;
        }
        return {result, true, 0, "nothing"};
    }

  private:
    static int bytes_of(MPI_Datatype type) {
        int size = 0;
        PMPI_Type_size(type, &size);
        return size;
    }

    /// The unit itself, its members in any order in memory, with gaps.
    MPI_Datatype place(Rng& rng) const {
        const int members = static_cast<int>(members_.size());
        MPI_Datatype result = MPI_DATATYPE_NULL;
        if (members == 1) {
            PMPI_Type_dup(members_[0], &result);
            return result;
        }
        constexpr MPI_Aint slot = 8;  // bytes, enough for each of the basic types and aligned for it
        std::vector<MPI_Aint> displacements;
        const int slots = members + rng.below(2);
        for (int i = 0; i < slots; ++i) displacements.push_back(i * slot);
        rng.shuffle(displacements);
        const std::vector<int> lengths(static_cast<std::size_t>(members), 1);
        MPI_Datatype tight = MPI_DATATYPE_NULL;
        PMPI_Type_create_struct(members, lengths.data(), displacements.data(), members_.data(), &tight);
        PMPI_Type_create_resized(tight, 0, slots * slot, &result);
        PMPI_Type_free(&tight);
        return result;
    }

    static MPI_Datatype scattered(Rng& rng, int units, MPI_Datatype unit) {
        std::vector<int> displacements;
        for (int i = 0; i < units + 2; ++i) displacements.push_back(i - 1);
        rng.shuffle(displacements);
        MPI_Datatype result = MPI_DATATYPE_NULL;
        PMPI_Type_create_indexed_block(units, 1, displacements.data(), unit, &result);
        return result;
    }

    /// Stretches of any length with gaps, the first before the address.
    static MPI_Datatype stretches(Rng& rng, int units, MPI_Datatype unit, MPI_Aint extent) {
        std::vector<int> lengths;
        std::vector<MPI_Aint> displacements;
        MPI_Aint at = -rng.below(3) * extent;
        for (int left = units; left > 0; left -= lengths.back()) {
            lengths.push_back(rng.between(1, left));
            displacements.push_back(at);
            at += (lengths.back() + rng.below(3)) * extent;
        }
        MPI_Datatype result = MPI_DATATYPE_NULL;
        PMPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), displacements.data(), unit,
                                  &result);
        return result;
    }

    static MPI_Datatype resized(int units, MPI_Datatype unit, MPI_Aint lb, MPI_Aint gap) {
        MPI_Datatype contiguous = MPI_DATATYPE_NULL;
        MPI_Datatype result = MPI_DATATYPE_NULL;
        PMPI_Type_contiguous(units, unit, &contiguous);
        MPI_Aint old_lb = 0;
        MPI_Aint extent = 0;
        PMPI_Type_get_extent(contiguous, &old_lb, &extent);
        PMPI_Type_create_resized(contiguous, lb, extent + gap, &result);
        PMPI_Type_free(&contiguous);
        return result;
    }

    /// Columns of a matrix with as many columns as there are items: the next item begins one unit further on.
    /// Without items: whole matrices, one after the other.
    static MPI_Datatype interleaved(int units, MPI_Datatype unit, int items, MPI_Aint extent) {
        MPI_Datatype column = MPI_DATATYPE_NULL;
        MPI_Datatype result = MPI_DATATYPE_NULL;
        PMPI_Type_vector(units, 1, items + 1, unit, &column);
        PMPI_Type_create_resized(column, 0, items > 0 ? extent : units * extent, &result);
        PMPI_Type_free(&column);
        return result;
    }

    static MPI_Datatype halves(Rng& rng, int units, MPI_Datatype unit, MPI_Aint extent) {
        const int first = units / 2;
        const int lengths[2] = {first, units - first};
        const MPI_Aint displacements[2] = {0, (first + rng.between(1, 2)) * extent};
        const MPI_Datatype types[2] = {unit, unit};
        MPI_Datatype result = MPI_DATATYPE_NULL;
        PMPI_Type_create_struct(2, lengths, displacements, types, &result);
        return result;
    }

    std::vector<MPI_Datatype> members_;
};

}  // namespace test
