#include "palmette/collectives/neighbours/neighbourhood.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

#include "palmette/base/error.hpp"

namespace palmette::collectives {
namespace {

bool is_rank(std::int32_t neighbour) { return neighbour >= 0; }

}  // namespace

std::vector<std::int32_t> Neighbourhood::words(Rank rank, const Neighbours& own) {
    std::vector<std::int32_t> out{rank.value};
    for (const auto* list : {&own.sources, &own.targets})
        out.push_back(static_cast<std::int32_t>(std::count_if(list->begin(), list->end(), is_rank)));
    for (const auto* list : {&own.sources, &own.targets})
        std::copy_if(list->begin(), list->end(), std::back_inserter(out), is_rank);
    return out;
}

Neighbourhood::Neighbourhood(const std::vector<std::int32_t>& words_of_all) {
    // An edge inside of the group is listed at both of its ends: it is taken from its source.
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> out, in;
    std::vector<std::int32_t> members;
    for (auto at = words_of_all.begin(); at != words_of_all.end();) {
        const auto left = words_of_all.end() - at;
        const std::int64_t sources = left >= 3 ? at[1] : -1, targets = left >= 3 ? at[2] : -1;
        if (sources < 0 || targets < 0 || left - 3 < sources + targets)
            base::fail("a list of neighbours ends too early");
        const std::int32_t rank = at[0];
        members.push_back(rank);
        at += 3;
        for (const auto end = at + sources; at != end; ++at) ++in[{*at, rank}];
        for (const auto end = at + targets; at != end; ++at) ++out[{rank, *at}];
    }
    std::sort(members.begin(), members.end());
    for (const auto& [ends, count] : in)
        if (!std::binary_search(members.begin(), members.end(), ends.first)) out[ends] = count;
    for (const auto& [ends, count] : out) edges_.push_back({ends.first, ends.second, count});
}

std::int32_t most_parallel(const Neighbours& own) {
    std::int32_t most = 1;
    for (const auto* list : {&own.sources, &own.targets}) {
        std::unordered_map<std::int32_t, std::int32_t> seen;
        for (const std::int32_t rank : *list)
            if (is_rank(rank)) most = std::max(most, ++seen[rank]);
    }
    return most;
}

std::uint64_t unmatched(Rank rank, const Neighbours& own) {
    // The finalizer of splitmix64 (Steele, Lea, Flood 2014): sums of its values have no structure that edges could
    // have.
    const auto mixed = [](std::int32_t source, std::int32_t target) {
        std::uint64_t x = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(source)) << 32 |
                           static_cast<std::uint32_t>(target)) +
                          0x9e3779b97f4a7c15U;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
        x = (x ^ x >> 27) * 0x94d049bb133111ebU;
        return x ^ x >> 31;
    };
    std::uint64_t sum = 0;
    for (const std::int32_t target : own.targets)
        if (is_rank(target)) sum += mixed(rank.value, target);
    for (const std::int32_t source : own.sources)
        if (is_rank(source)) sum -= mixed(source, rank.value);
    return sum;
}

std::vector<NeighbourBlocks::Place> NeighbourBlocks::sent(Rank rank, const Neighbours& own) const {
    std::vector<Place> out;
    std::unordered_map<std::int32_t, std::int32_t> seen;
    if (!alltoall) {
        if (std::any_of(own.targets.begin(), own.targets.end(), is_rank))
            out.push_back({plan::Buffer::send, rank.value});
        return out;
    }
    for (const std::int32_t target : own.targets)
        out.push_back({plan::Buffer::send, is_rank(target) ? of(rank.value, target, seen[target]++) : -1});
    return out;
}

std::vector<NeighbourBlocks::Place> NeighbourBlocks::received(Rank rank, const Neighbours& own) const {
    std::vector<Place> out;
    std::unordered_map<std::int32_t, std::int32_t> seen;
    for (std::size_t j = 0; j < own.sources.size(); ++j) {
        const std::int32_t source = own.sources[j];
        if (!is_rank(source)) {
            out.push_back({plan::Buffer::recv, -1});
            continue;
        }
        const std::int32_t index = own.edge_of_source.empty() ? seen[source]++ : own.edge_of_source[j];
        const auto buffer = plan::caller_buffer(1 + static_cast<std::size_t>(alltoall ? 0 : index));
        out.push_back({buffer, of(source, rank.value, index)});
    }
    return out;
}

}  // namespace palmette::collectives
