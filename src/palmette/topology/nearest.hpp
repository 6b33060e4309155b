// The places that ranks can take, and which free one is nearest to another.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "palmette/topology/job.hpp"

namespace palmette::topology {

/// How far places are from each other, in any unit, such as the seconds of a message. Symmetric: the worse way counts.
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
    /// The free place nearest to `reference`, the first one where several are; -1 when all are taken.
    virtual std::int32_t nearest(std::int32_t reference) = 0;
};

/// A look costs the number of places; of equally near ones the lowest number comes first.
std::unique_ptr<FreePlaces> free_places(const Distances& distances);

/// Place r is where rank r of the job sits; near is what shares an inner group. A look costs the number of levels; of
/// equally near places the one with the lowest position comes first. `job` must live as long.
std::unique_ptr<FreePlaces> free_places(const Job& job);

}  // namespace palmette::topology
