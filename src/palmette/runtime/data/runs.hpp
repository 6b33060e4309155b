// The bytes of a call's buffer that are data.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "palmette/runtime/data/call_arguments.hpp"

namespace palmette::runtime {

/// Some bytes from an argument's address on.
struct Run {
    std::int64_t begin, end;
    friend bool operator<(const Run& a, const Run& b) { return a.begin < b.begin; }
};

/// The bytes of a buffer that are data, sorted, disjoint and not adjacent.
class Runs {
  public:
    void add(std::int64_t begin, std::int64_t bytes) {
        if (bytes <= 0) return;
        if (!all_.empty() && all_.back().end == begin)
            all_.back().end += bytes;
        else
            all_.push_back({begin, begin + bytes});
    }
    void add(const Runs& others, std::int64_t shift) {
        for (const Run& run : others.all_) add(run.begin + shift, run.end - run.begin);
    }
    void sort() {
        std::sort(all_.begin(), all_.end());
        std::size_t kept = 0;
        for (std::size_t i = 1; i < all_.size(); ++i) {
            if (all_[i].begin <= all_[kept].end)
                all_[kept].end = std::max(all_[kept].end, all_[i].end);
            else
                all_[++kept] = all_[i];
        }
        if (!all_.empty()) all_.resize(kept + 1);
    }
    bool empty() const { return all_.empty(); }
    std::int64_t begin() const { return all_.front().begin; }
    std::int64_t end() const { return all_.back().end; }
    const std::vector<Run>& all() const { return all_; }
    std::int64_t bytes() const {
        std::int64_t sum = 0;
        for (const Run& run : all_) sum += run.end - run.begin;
        return sum;
    }

  private:
    std::vector<Run> all_;
};

/// Adds those of `count` elements at `at`. False: MPI must check the arguments.
bool add_elements(Runs& runs, std::int64_t at, std::int64_t count, MPI_Datatype type);

/// Adds the blocks of a side: `blocks` of them, or all in one for reductions. False: as above.
bool add_side(Runs& runs, const Side& side, int blocks);

/// What is known of types ends with the MPI: its next incarnation has other attributes.
void forget_runs_of_types();

}  // namespace palmette::runtime
