#include "palmette/topology/mapping/rank_orders.hpp"

#include <algorithm>
#include <bit>

#include "palmette/topology/index.hpp"

namespace palmette::topology {
namespace {

/// The order under construction.
class Placing {
  public:
    explicit Placing(FreePlaces& places) : places_(places), order_(at(places.size()), -1) { put(0, 0); }
    std::int32_t size() const { return places_.size(); }
    bool is_placed(std::int32_t rank) const { return order_[at(rank)] >= 0; }
    /// Assigns a rank to the free place nearest to another rank's.
    void put_near(std::int32_t rank, std::int32_t reference) { put(rank, places_.nearest(order_[at(reference)])); }
    RankOrder finish() { return std::move(order_); }

  private:
    void put(std::int32_t rank, std::int32_t place) {
        order_[at(rank)] = place;
        places_.take(place);
    }
    FreePlaces& places_;
    RankOrder order_;
};

struct TreeEdge {
    std::int32_t parent, child, below;  ///< `below`: ranks in the child's subtree
};

/// The edges of the binomial tree with root 0, those with the largest step first: the stages of a broadcast.
std::vector<TreeEdge> binomial_edges(std::int32_t ranks) {
    std::vector<TreeEdge> edges;
    for (auto step = static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint32_t>(ranks)) / 2); step >= 1;
         step /= 2)
        for (std::int64_t parent = 0; parent + step < ranks; parent += 2 * std::int64_t{step}) {
            const auto child = static_cast<std::int32_t>(parent + step);
            edges.push_back({static_cast<std::int32_t>(parent), child, std::min(step, ranks - child)});
        }
    return edges;
}

RankOrder along(const std::vector<TreeEdge>& edges, FreePlaces& places) {
    Placing placing(places);
    for (const TreeEdge& edge : edges) placing.put_near(edge.child, edge.parent);
    return placing.finish();
}

}  // namespace

RankOrder ring_order(FreePlaces& places) {
    Placing placing(places);
    for (std::int32_t rank = 1; rank < placing.size(); ++rank) placing.put_near(rank, rank - 1);
    return placing.finish();
}

RankOrder recursive_doubling_order(FreePlaces& places) {
    Placing placing(places);
    const auto whole = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(placing.size())));
    std::int32_t reference = 0;
    std::int32_t placed = 1;
    std::vector<std::int32_t> earlier;  // backtracked to where all partners of a reference are placed
    while (placed < whole) {
        std::int32_t partners = 0;
        std::int32_t last = -1;
        for (std::int32_t bit = whole / 2; bit >= 1 && partners < 2; bit /= 2) {
            const std::int32_t partner = reference ^ bit;
            if (placing.is_placed(partner)) continue;
            placing.put_near(partner, reference);
            earlier.push_back(partner);
            last = partner;
            ++partners;
            ++placed;
        }
        if (last >= 0) {
            reference = last;
        } else {
            reference = earlier.back();
            earlier.pop_back();
        }
    }
    for (std::int32_t rank = whole; rank < placing.size(); ++rank) placing.put_near(rank, rank - whole);
    return placing.finish();
}

RankOrder binomial_gather_order(FreePlaces& places) {
    std::vector<TreeEdge> edges = binomial_edges(places.size());
    std::stable_sort(edges.begin(), edges.end(),
                     [](const TreeEdge& a, const TreeEdge& b) { return a.below > b.below; });
    return along(edges, places);
}

RankOrder binomial_bcast_order(FreePlaces& places) { return along(binomial_edges(places.size()), places); }

}  // namespace palmette::topology
