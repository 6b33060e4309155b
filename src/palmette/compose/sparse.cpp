#include "palmette/compose/sparse.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "palmette/base/error.hpp"

namespace palmette::compose {

std::int64_t Signature::count() const {
    std::int64_t total = 0;
    for (const Interval& run : indices) total += run.count;
    return total;
}

std::vector<Signature> signatures(const std::vector<std::pair<std::int32_t, Interval>>& touched, Interval owned,
                                  std::int64_t coarsen) {
    // Where ranks come and go, in units of `coarsen` indices.
    struct Edge {
        std::int64_t unit;
        bool comes;
        std::int32_t rank;
    };
    auto runs = touched;
    for (auto& [rank, run] : runs) {
        const std::int64_t first = run.first / coarsen;
        run = {first, (run.end() - 1) / coarsen + 1 - first};
    }
    std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
        return std::tuple(a.first, a.second.first) < std::tuple(b.first, b.second.first);
    });
    std::vector<Edge> edges;
    for (const auto& [rank, run] : runs) {
        if (!edges.empty() && edges.back().rank == rank && run.first <= edges.back().unit) {
            edges.back().unit = std::max(edges.back().unit, run.end());
            continue;
        }
        edges.push_back({run.first, true, rank});
        edges.push_back({run.end(), false, rank});
    }
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.unit < b.unit; });

    std::vector<Signature> out;
    std::map<std::vector<std::int32_t>, std::size_t> known;
    std::set<std::int32_t> here;
    for (std::size_t i = 0; i < edges.size();) {
        const std::int64_t unit = edges[i].unit;
        for (; i < edges.size() && edges[i].unit == unit; ++i) {
            if (edges[i].comes)
                here.insert(edges[i].rank);
            else
                here.erase(edges[i].rank);
        }
        if (here.empty()) continue;
        std::vector<std::int32_t> contributors(here.begin(), here.end());
        const auto [at, fresh] = known.try_emplace(contributors, out.size());
        if (fresh) out.push_back({std::move(contributors), {}});
        const std::int64_t first = std::max(owned.first, unit * coarsen);
        const std::int64_t end = std::min(owned.end(), edges[i].unit * coarsen);
        std::vector<Interval>& indices = out[at->second].indices;
        if (!indices.empty() && indices.back().end() == first)
            indices.back().count += end - first;
        else
            indices.push_back({first, end - first});
    }
    return out;
}

namespace {

/// Ascending numbers as runs.
std::vector<Interval> runs_of(const std::vector<std::int32_t>& ranks) {
    std::vector<Interval> out;
    for (const std::int32_t rank : ranks) {
        if (!out.empty() && out.back().end() == rank)
            ++out.back().count;
        else
            out.push_back({rank, 1});
    }
    return out;
}

void write_runs(std::vector<std::int64_t>& out, const std::vector<Interval>& runs) {
    out.push_back(static_cast<std::int64_t>(runs.size()));
    for (const Interval& run : runs) out.push_back(run.first), out.push_back(run.count);
}

}  // namespace

void write(std::vector<std::int64_t>& out, std::int64_t number, const Signature& signature, bool indices) {
    out.push_back(number);
    out.push_back(signature.count());
    write_runs(out, runs_of(signature.contributors));
    write_runs(out, indices ? signature.indices : std::vector<Interval>());
}

void read(Rank owner, const std::int64_t* words, std::int64_t count, std::vector<SparseBlock>& out) {
    const std::int64_t* const end = words + count;
    const auto next = [&] {
        if (words == end) base::fail("rank ", owner, " tells a block that ends too early");
        return *words++;
    };
    const auto next_runs = [&] {
        std::vector<Interval> runs(static_cast<std::size_t>(next()));
        for (Interval& run : runs) run.first = next(), run.count = next();
        return runs;
    };
    while (words != end) {
        SparseBlock block;
        block.owner = owner;
        block.number = next();
        block.count = next();
        std::vector<std::int32_t> contributors;
        for (const Interval& run : next_runs())
            for (std::int64_t rank = run.first; rank < run.end(); ++rank)
                contributors.push_back(static_cast<std::int32_t>(rank));
        block.contributors = RankSet::of(std::move(contributors));
        block.indices = next_runs();
        out.push_back(std::move(block));
    }
}

Composition sparse_composition(std::int32_t ranks, std::int64_t blocks, const std::vector<SparseBlock>& known,
                               std::int64_t index_bytes, std::int64_t element_bytes, const Operation& operation,
                               bool back) {
    std::vector<std::pair<std::int64_t, std::int64_t>> lengths;
    for (const SparseBlock& block : known) lengths.emplace_back(block.number, block.count * index_bytes);
    Composition out(ranks, Lengths::some(blocks, std::move(lengths)), element_bytes);
    out.make_local();
    const Buffer partial = out.buffer("partial"), mine = out.buffer("mine");
    const std::uint8_t number = back ? std::uint8_t{0} : out.operation(operation);
    for (const SparseBlock& block : known) {
        if (back)
            out.multicast(block.owner, block.contributors, mine, {block.number, 1}, partial);
        else
            out.reduce(block.contributors, block.owner, partial, {block.number, 1}, mine, number);
    }
    return out;
}

}  // namespace palmette::compose
