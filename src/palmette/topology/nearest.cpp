#include "palmette/topology/nearest.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "palmette/base/error.hpp"
#include "palmette/topology/index.hpp"

namespace palmette::topology {
namespace {

class PlacesByDistance final : public FreePlaces {
  public:
    explicit PlacesByDistance(const Distances& distances) : distances_(distances), free_(at(distances.size()), true) {}
    std::int32_t size() const override { return distances_.size(); }
    void take(std::int32_t place) override { free_[at(place)] = false; }
    std::int32_t nearest(std::int32_t reference) override {
        std::int32_t best = -1;
        for (std::int32_t place = 0; place < size(); ++place)
            if (free_[at(place)] && (best < 0 || distances_(reference, place) < distances_(reference, best)))
                best = place;
        return best;
    }

  private:
    const Distances& distances_;
    std::vector<bool> free_;
};

/// Groups are contiguous positions, so the nearest free place is the first free position of the innermost group that
/// has one.
class PlacesOfJob final : public FreePlaces {
  public:
    explicit PlacesOfJob(const Job& job) : job_(job), next_(at(job.size()) + 1) {
        std::iota(next_.begin(), next_.end(), 0);
    }
    std::int32_t size() const override { return job_.size(); }
    void take(std::int32_t place) override {
        const std::int32_t position = job_.position_of(Rank{place}).value;
        next_[at(position)] = position + 1;
    }
    std::int32_t nearest(std::int32_t reference) override {
        const std::int32_t position = job_.position_of(Rank{reference}).value;
        for (auto level = job_.levels().rbegin(); level != job_.levels().rend(); ++level) {
            const std::int32_t group = level->groups.group_of(position);
            const std::int32_t free = first_free(level->groups.first(group));
            if (free < level->groups.end(group)) return job_.rank_at(Position{free}).value;
        }
        const std::int32_t free = first_free(0);
        return free < size() ? job_.rank_at(Position{free}).value : -1;
    }

  private:
    /// The first free position from `position` on, or the number of positions; with path compression (union-find) for
    /// later queries.
    std::int32_t first_free(std::int32_t position) {
        std::int32_t end = position;
        while (next_[at(end)] != end) end = next_[at(end)];
        while (next_[at(position)] != end && position != end) position = std::exchange(next_[at(position)], end);
        return end;
    }

    const Job& job_;
    std::vector<std::int32_t> next_;
};

}  // namespace

Distances::Distances(std::int32_t size, std::vector<double> values) : size_(size), values_(std::move(values)) {
    if (size < 1) base::fail("a matrix of distances needs at least one row");
    if (values_.size() != at(size) * at(size))
        base::fail("a matrix of ", size, " rows needs ", at(size) * at(size), " numbers, not ", values_.size());
    for (std::int32_t a = 0; a < size; ++a)
        for (std::int32_t b = 0; b <= a; ++b) {
            double& one = values_[at(a) * at(size) + at(b)];
            double& other = values_[at(b) * at(size) + at(a)];
            for (const double value : {one, other})
                if (!std::isfinite(value) || value < 0)
                    base::fail("row ", a + 1, ", column ", b + 1, ": ", value,
                               " is not a distance; give numbers of 0 or more");
            one = other = a == b ? 0 : std::max(one, other);
        }
}

std::unique_ptr<FreePlaces> free_places(const Distances& distances) {
    return std::make_unique<PlacesByDistance>(distances);
}

std::unique_ptr<FreePlaces> free_places(const Job& job) { return std::make_unique<PlacesOfJob>(job); }

}  // namespace palmette::topology
