// Nearest-free-place queries for greedy rank mapping.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "palmette/topology/job.hpp"

namespace palmette::topology {

/// Distance matrix of places, in any unit, such as message latency. Symmetric: the larger of both directions.
class Distances {
  public:
    /// `values[i * size + j]` from place i to place j; the diagonal is ignored. Throws base::Error unless all are
    /// finite and not negative, and size >= 1.
    Distances(std::int32_t size, std::vector<double> values);

    std::int32_t size() const { return size_; }
    double operator()(std::int32_t a, std::int32_t b) const {
        return values_[static_cast<std::size_t>(a) * static_cast<std::size_t>(size_) + static_cast<std::size_t>(b)];
    }

  private:
    std::int32_t size_;
    std::vector<double> values_;
};

/// Places by number, each free until it is taken.
class FreePlaces {
  public:
    virtual ~FreePlaces() = default;
    virtual std::int32_t size() const = 0;
    virtual void take(std::int32_t place) = 0;
    /// The free place nearest to `reference`, the first one in a tie; -1 when all are taken.
    virtual std::int32_t nearest(std::int32_t reference) = 0;
};

/// O(places) per query; ties go to the lowest number.
std::unique_ptr<FreePlaces> free_places(const Distances& distances);

/// Place r is where rank r of the job sits; near means a common inner group. O(levels) per query; ties go to the lowest
/// position. `job` must outlive it.
std::unique_ptr<FreePlaces> free_places(const Job& job);

}  // namespace palmette::topology
