#include "palmette/topology/mapping/bottleneck_ring.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <optional>

#include "palmette/topology/index.hpp"

namespace palmette::topology {
namespace {

constexpr std::int32_t most_exact = 20;

/// The edges up to a threshold.
using Neighbours = std::vector<std::vector<std::int32_t>>;

Neighbours neighbours_within(const Distances& distances, double threshold) {
    Neighbours out(at(distances.size()));
    for (std::int32_t a = 0; a < distances.size(); ++a)
        for (std::int32_t b = 0; b < distances.size(); ++b)
            if (a != b && distances(a, b) <= threshold) out[at(a)].push_back(b);
    return out;
}

/// A cycle through all places by dynamic programming: ends[set] holds the places at which a path from 0 through `set`
/// can end. Sets are of the places from 1 on.
std::optional<RankOrder> exact_cycle(const Neighbours& neighbours) {
    const auto p = static_cast<std::int32_t>(neighbours.size());
    const std::int32_t others = p - 1;
    std::vector<std::uint32_t> near(at(p), 0);  // by place, bit i is place i + 1
    for (std::int32_t a = 0; a < p; ++a)
        for (const std::int32_t b : neighbours[at(a)])
            if (b > 0) near[at(a)] |= 1U << (b - 1);
    const std::uint32_t all = (others == 32 ? 0U : 1U << others) - 1U;
    std::vector<std::uint32_t> ends(at(std::int64_t{all} + 1), 0);
    for (std::int32_t i = 0; i < others; ++i)
        if (near[0] >> i & 1U) ends[at(1U << i)] = 1U << i;
    for (std::uint32_t set = 1; set <= all; ++set)
        for (std::uint32_t last = ends[set]; last != 0; last &= last - 1) {
            const auto i = std::countr_zero(last);
            for (std::uint32_t next = near[at(i + 1)] & ~set; next != 0; next &= next - 1) {
                const std::uint32_t bit = next & (~next + 1);
                ends[set | bit] |= bit;
            }
        }
    std::uint32_t last = ends[all] & near[0];
    if (last == 0) return std::nullopt;
    // Backtracks from the end; ties go to the lowest place.
    RankOrder order;
    std::uint32_t set = all;
    while (set != 0) {
        const auto i = std::countr_zero(last);
        order.push_back(i + 1);
        set &= ~(1U << i);
        last = ends[set] & near[at(i + 1)];
    }
    order.push_back(0);
    std::reverse(order.begin(), order.end());
    return order;
}

/// Whether the graph is biconnected (Tarjan 1972); without recursion.
bool is_biconnected(const Neighbours& neighbours) {
    const auto p = static_cast<std::int32_t>(neighbours.size());
    std::vector<std::int32_t> found(at(p), -1), low(at(p), 0), parent(at(p), -1);
    std::vector<std::size_t> next(at(p), 0);
    std::vector<std::int32_t> path{0};
    std::int32_t counter = 0;
    std::int32_t children_of_root = 0;
    found[0] = low[0] = counter++;
    while (!path.empty()) {
        const std::int32_t a = path.back();
        if (next[at(a)] < neighbours[at(a)].size()) {
            const std::int32_t b = neighbours[at(a)][next[at(a)]++];
            if (found[at(b)] < 0) {
                parent[at(b)] = a;
                found[at(b)] = low[at(b)] = counter++;
                path.push_back(b);
                if (a == 0) ++children_of_root;
            } else if (b != parent[at(a)]) {
                low[at(a)] = std::min(low[at(a)], found[at(b)]);
            }
            continue;
        }
        path.pop_back();
        const std::int32_t above = parent[at(a)];
        if (above < 0) continue;
        low[at(above)] = std::min(low[at(above)], low[at(a)]);
        if (above != 0 && low[at(a)] >= found[at(above)]) return false;
    }
    return counter == p && (p <= 2 || children_of_root == 1);
}

/// splitmix64, so that the search is the same on every machine.
class RandomNumbers {
  public:
    std::uint64_t below(std::uint64_t limit) {
        state_ += 0x9E3779B97F4A7C15U;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
        return (z ^ (z >> 31)) % limit;
    }

  private:
    std::uint64_t state_ = 1;
};

/// Searches a Hamiltonian cycle by extending a path and, at a dead end, rotating (reversing) its tail (Posa). Each
/// operation counts against `budget`.
std::optional<RankOrder> cycle_by_rotations(const Neighbours& neighbours, std::int64_t budget) {
    const auto p = static_cast<std::int32_t>(neighbours.size());
    RandomNumbers random;
    RankOrder path{0};
    std::vector<std::int32_t> index(at(p), -1);
    index[0] = 0;
    while (budget > 0) {
        const std::int32_t end = path.back();
        const auto& near = neighbours[at(end)];
        budget -= static_cast<std::int64_t>(near.size()) + 1;
        std::int32_t next = -1;
        for (const std::int32_t b : near)
            if (index[at(b)] < 0 && (next < 0 || neighbours[at(b)].size() < neighbours[at(next)].size())) next = b;
        if (next >= 0) {
            index[at(next)] = static_cast<std::int32_t>(path.size());
            path.push_back(next);
            continue;
        }
        if (static_cast<std::int32_t>(path.size()) == p && std::binary_search(near.begin(), near.end(), 0)) return path;
        const std::int32_t turn = near[at(static_cast<std::int64_t>(random.below(near.size())))];
        const std::int32_t from = index[at(turn)] + 1;
        std::reverse(path.begin() + from, path.end());
        for (std::size_t i = at(from); i < path.size(); ++i) index[at(path[i])] = static_cast<std::int32_t>(i);
        budget -= static_cast<std::int64_t>(path.size()) - from;
    }
    return std::nullopt;
}

/// The first of `values` from `low` on for which `holds`; all after it hold, too. values.size() when none does.
std::size_t first_that(const std::vector<double>& values, std::size_t low, const std::function<bool(double)>& holds) {
    std::size_t high = values.size();
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (holds(values[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

}  // namespace

double slowest_edge(const Distances& distances, const RankOrder& order) {
    double slowest = 0;
    for (std::size_t i = 0; i < order.size(); ++i)
        slowest = std::max(slowest, distances(order[i], order[(i + 1) % order.size()]));
    return slowest;
}

BottleneckRing bottleneck_ring(const Distances& distances, std::int64_t budget) {
    const std::int32_t p = distances.size();
    BottleneckRing best;
    best.order = ring_order(*free_places(distances));
    best.slowest = slowest_edge(distances, best.order);
    if (p <= 3) {
        best.bound = best.slowest;
        return best;
    }
    std::vector<double> values;
    for (std::int32_t a = 0; a < p; ++a)
        for (std::int32_t b = 0; b < a; ++b)
            if (distances(a, b) <= best.slowest) values.push_back(distances(a, b));
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    const std::size_t lowest =
        first_that(values, 0, [&](double t) { return is_biconnected(neighbours_within(distances, t)); });
    best.bound = values[lowest];

    std::int64_t left = budget;
    const auto improves = [&](double threshold) {
        const Neighbours neighbours = neighbours_within(distances, threshold);
        // A tenth of the remaining budget per threshold, so that the last ones get their part, too.
        const std::int64_t part = left / 10;
        left -= part;
        auto found = p <= most_exact ? exact_cycle(neighbours) : cycle_by_rotations(neighbours, part);
        if (!found) return false;
        if (const double slowest = slowest_edge(distances, *found); slowest < best.slowest) {
            best.slowest = slowest;
            best.order = std::move(*found);
        }
        return true;
    };
    const std::size_t reached = first_that(values, lowest, improves);
    if (p <= most_exact) best.bound = reached < values.size() ? values[reached] : best.slowest;
    return best;
}

}  // namespace palmette::topology
