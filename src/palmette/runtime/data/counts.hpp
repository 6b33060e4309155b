// Counts and displacements by rank, as MPI's functions and their large-count forms take them.
#pragma once

#include <cstdint>
#include <cstring>

namespace palmette::runtime {

/// A caller's array of int, MPI_Count or MPI_Aint; null where the caller passes none. Non-owning.
class Counts {
  public:
    Counts() = default;
    Counts(const int* narrow) : at_(narrow), wide_(false) {}
    /// Arrays of 64-bit integers of any name.
    template <class Wide>
        requires(sizeof(Wide) == 8)
    Counts(const Wide* wide) : at_(wide), wide_(true) {}

    explicit operator bool() const { return at_ != nullptr; }
    std::int64_t operator[](int rank) const {
        if (!wide_) return static_cast<const int*>(at_)[rank];
        std::int64_t value = 0;
        std::memcpy(&value, static_cast<const char*>(at_) + std::int64_t{rank} * 8, sizeof value);
        return value;
    }

  private:
    const void* at_ = nullptr;
    bool wide_ = false;
};

/// The sum of the counts of all ranks, which every rank of allgatherv and reduce_scatter knows; -1 where one is
/// negative or there are none.
inline std::int64_t sum_of(Counts counts, int ranks) {
    if (!counts) return -1;
    std::int64_t sum = 0;
    for (int r = 0; r < ranks; ++r) {
        if (counts[r] < 0) return -1;
        sum += counts[r];
    }
    return sum;
}

/// Their mean, rounded up; -1 likewise.
inline std::int64_t mean_count(std::int64_t sum, int ranks) { return sum < 0 ? -1 : (sum + ranks - 1) / ranks; }
inline std::int64_t mean_count(Counts counts, int ranks) { return mean_count(sum_of(counts, ranks), ranks); }

}  // namespace palmette::runtime
