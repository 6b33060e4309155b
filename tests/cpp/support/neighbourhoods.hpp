// Neighbourhoods, the exchange of their edges, and what their collectives must do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "palmette/collectives/neighbours/neighbour_program.hpp"
#include "palmette/plan/contract.hpp"
#include "palmette/plan/plan.hpp"

namespace palmette::test {

using collectives::NeighbourBlocks;
using collectives::Neighbourhood;
using collectives::NeighbourRoute;
using collectives::Neighbours;

/// Neighbours of all ranks, by rank.
using AllNeighbours = std::vector<Neighbours>;

/// Adds an edge to the lists of both its ends.
inline void connect(AllNeighbours& all, std::int32_t source, std::int32_t target) {
    all[static_cast<std::size_t>(source)].targets.push_back(target);
    all[static_cast<std::size_t>(target)].sources.push_back(source);
}

/// The 26 neighbours of each cell of a periodic grid, in the same order at all cells. In a grid that is narrow a rank
/// meets another one, or itself, several times.
inline AllNeighbours halo_27(std::int32_t x, std::int32_t y, std::int32_t z) {
    AllNeighbours all(static_cast<std::size_t>(x * y * z));
    const auto at = [&](std::int32_t i, std::int32_t j, std::int32_t k) {
        return ((i + x) % x * y + (j + y) % y) * z + (k + z) % z;
    };
    for (std::int32_t i = 0; i < x; ++i)
        for (std::int32_t j = 0; j < y; ++j)
            for (std::int32_t k = 0; k < z; ++k)
                for (std::int32_t d = 0; d < 27; ++d) {
                    if (d == 13) continue;
                    const std::int32_t a = d / 9 - 1, b = d / 3 % 3 - 1, c = d % 3 - 1;
                    Neighbours& own = all[static_cast<std::size_t>(at(i, j, k))];
                    own.targets.push_back(at(i + a, j + b, k + c));
                    own.sources.push_back(at(i - a, j - b, k - c));
                }
    return all;
}

/// Each rank sends to up to `most` ranks, itself and the same one again among them; some have no neighbours at all.
inline AllNeighbours random_neighbours(std::int32_t ranks, std::int32_t most, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    AllNeighbours all(static_cast<std::size_t>(ranks));
    std::vector<std::pair<std::int32_t, std::int32_t>> edges;
    for (std::int32_t r = 0; r < ranks; ++r)
        for (auto left = random() % static_cast<std::uint64_t>(most + 1); left > 0; --left)
            edges.emplace_back(r, static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(ranks)));
    std::shuffle(edges.begin(), edges.end(), random);
    for (const auto& [source, target] : edges) connect(all, source, target);
    return all;
}

/// What `rank` knows after the members of its group have exchanged their lists.
inline Neighbourhood exchanged(const AllNeighbours& all, const topology::Job& job, const NeighbourRoute& route,
                               base::Rank rank) {
    std::vector<std::int32_t> words;
    for (std::int32_t r = 0; r < job.size(); ++r) {
        const bool member = route.levels.empty() ? r == rank.value
                                                 : job.group_at(route.levels.front(), job.position_of({r})) ==
                                                       job.group_at(route.levels.front(), job.position_of(rank));
        if (!member) continue;
        const auto part = Neighbourhood::words({r}, all[static_cast<std::size_t>(r)]);
        words.insert(words.end(), part.begin(), part.end());
    }
    return Neighbourhood(words);
}

inline NeighbourBlocks blocks_for(const AllNeighbours& all, bool alltoall) {
    NeighbourBlocks out{alltoall, static_cast<std::int32_t>(all.size()), 1};
    for (const Neighbours& own : all) out.parallel = std::max(out.parallel, collectives::most_parallel(own));
    return out;
}

/// The two neighbours in each dimension of a grid, first the one before; none beyond the edge of an open one. What is
/// sent to the one before comes from the one after, also where both are the same rank.
inline AllNeighbours grid(std::int32_t x, std::int32_t y, bool periodic) {
    AllNeighbours all(static_cast<std::size_t>(x * y));
    const auto at = [&](std::int32_t i, std::int32_t j) {
        const bool inside = 0 <= i && i < x && 0 <= j && j < y;
        return inside || periodic ? (i + x) % x * y + (j + y) % y : -1;
    };
    for (std::int32_t i = 0; i < x; ++i)
        for (std::int32_t j = 0; j < y; ++j) {
            Neighbours& own = all[static_cast<std::size_t>(at(i, j))];
            own.targets = {at(i - 1, j), at(i + 1, j), at(i, j - 1), at(i, j + 1)};
            own.sources = own.targets;
            own.edge_of_source.resize(4);
            // By the source's list, in which an edge stands on the other side.
            for (const std::size_t side : {0U, 1U, 2U, 3U})
                for (std::size_t other = 0; other < 4; ++other)
                    if (own.sources[other] == own.sources[side] && (other ^ 1U) < (side ^ 1U))
                        ++own.edge_of_source[side];
        }
    return all;
}

/// MPI's definition: the k-th block that a rank sends to another is the k-th that this one gets from there.
class NeighbourContract : public plan::Contract {
  public:
    NeighbourContract(const AllNeighbours& all, NeighbourBlocks blocks) : all_(all), blocks_(blocks) {
        for (std::size_t r = 0; r < all.size(); ++r) {
            const base::Rank rank{static_cast<std::int32_t>(r)};
            std::vector<NeighbourBlocks::Place> places = blocks.sent(rank, all[r]);
            for (const NeighbourBlocks::Place& place : blocks.received(rank, all[r])) places.push_back(place);
            std::sort(places.begin(), places.end());
            for (const auto& [buffer, block] : places)
                if (block >= 0) holds_[{rank.value, buffer}].insert({block, 1});
        }
    }
    std::int64_t blocks() const override { return blocks_.count(); }
    std::int64_t bytes_of(std::int64_t) const override { return 8; }
    std::size_t buffers() const override { return blocks_.buffers(); }
    std::string buffer_name(std::size_t index) const override { return name_of(plan::caller_buffer(index)); }
    plan::Blocks holds(base::Rank rank, plan::Buffer buffer) const override {
        const auto at = holds_.find({rank.value, buffer});
        return at == holds_.end() ? plan::Blocks() : at->second;
    }
    std::vector<bool> commutes() const override { return {}; }
    void evaluate(
        plan::Terms& terms,
        const std::function<void(base::Rank, plan::Buffer, std::int64_t, plan::Contents)>& visit) const override {
        for (std::size_t r = 0; r < all_.size(); ++r) {
            const base::Rank rank{static_cast<std::int32_t>(r)};
            for (const auto& [buffer, block] : blocks_.sent(rank, all_[r]))
                if (block >= 0) visit(rank, buffer, block, terms.leaf(rank.value, buffer, block));
            const auto received = blocks_.received(rank, all_[r]);
            std::map<std::int32_t, std::size_t> seen;
            for (std::size_t j = 0; j < received.size(); ++j) {
                const std::int32_t source = all_[r].sources[j];
                if (source < 0) continue;
                const std::size_t in_order = seen[source]++;
                const auto& edges = all_[r].edge_of_source;
                const std::size_t k = edges.empty() ? in_order : static_cast<std::size_t>(edges[j]);
                visit(rank, received[j].buffer, received[j].block,
                      terms.leaf(source, plan::Buffer::send, from(source, rank.value, k)));
            }
        }
    }

  private:
    /// The number of the k-th block that `source` sends to `target`, by the source's own list.
    std::int64_t from(std::int32_t source, std::int32_t target, std::size_t k) const {
        const Neighbours& own = all_[static_cast<std::size_t>(source)];
        const auto sent = blocks_.sent({source}, own);
        for (std::size_t i = 0; i < own.targets.size(); ++i)
            if (own.targets[i] == target && k-- == 0) return sent[blocks_.alltoall ? i : 0].block;
        return -1;
    }

    const AllNeighbours& all_;
    NeighbourBlocks blocks_;
    std::map<std::pair<std::int32_t, plan::Buffer>, plan::Blocks> holds_;
};

/// All ranks' programs, each from what its own group has exchanged.
inline plan::Plan neighbour_plan(const AllNeighbours& all, const topology::Job& job, bool alltoall,
                                 const NeighbourRoute& route) {
    const NeighbourBlocks blocks = blocks_for(all, alltoall);
    plan::Plan plan;
    plan.request.collective = plan::Collective::composed;
    plan.contract = std::make_shared<NeighbourContract>(all, blocks);
    std::map<std::int32_t, Neighbourhood> known;
    for (std::int32_t r = 0; r < job.size(); ++r) {
        const std::int32_t group = route.levels.empty() ? r : job.group_at(route.levels.front(), job.position_of({r}));
        auto at = known.find(group);
        if (at == known.end()) at = known.emplace(group, exchanged(all, job, route, {r})).first;
        plan.programs.push_back(collectives::neighbour_program(job, {r}, at->second, blocks, route));
    }
    return plan;
}

}  // namespace palmette::test
