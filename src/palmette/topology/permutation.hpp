// A permutation of 0..n-1, stored compressed as arithmetic runs.
#pragma once

#include <cstdint>
#include <vector>

namespace palmette::topology {

/// Which rank sits at which position, or the reverse. Placements that schedulers make (block, cyclic, whole hosts in
/// any order) have few runs, so that no rank of a large job stores a table of all ranks: 12 bytes per run, O(log runs)
/// per lookup.
class Permutation {
  public:
    struct Run {
        std::int32_t first_index;  ///< index of the run's first entry
        std::int32_t first_value;
        std::int32_t stride;
    };

    Permutation() = default;
    static Permutation identity(std::int32_t size);
    /// Throws base::Error unless `values` holds each of 0..n-1 once.
    explicit Permutation(const std::vector<std::int32_t>& values);
    /// As written by `runs()`. Throws base::Error when the runs don't ascend from 0.
    static Permutation from_runs(std::int32_t size, std::vector<Run> runs);

    std::int32_t size() const { return size_; }
    std::int32_t operator[](std::int32_t index) const;
    const std::vector<Run>& runs() const { return runs_; }
    bool is_identity() const {
        return size_ < 2 || (runs_.size() == 1 && runs_.front().first_value == 0 && runs_.front().stride == 1);
    }

  private:
    std::int32_t size_ = 0;
    std::vector<Run> runs_;
};

}  // namespace palmette::topology
