#include "palmette/compose/sparse.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "palmette/base/error.hpp"

namespace palmette::compose {

std::vector<int> offsets_of(const Words& counts) {
    std::vector<int> out;
    std::int64_t total = 0;
    for (const std::int64_t count : counts) {
        out.push_back(static_cast<int>(total));
        total += count;
        if (total > std::numeric_limits<int>::max())
            base::fail("this rank and the others would exchange ", total,
                       " numbers or more about indices; raise coarsen");
    }
    return out;
}

std::vector<Words> runs_by_owner(Words touched, const Words& bounds) {
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (const std::int64_t index : touched)
        if (index < 0 || index >= bounds.back())
            base::fail("index ", index, " is touched, outside of 0 to ", bounds.back() - 1);
    std::vector<Words> out(bounds.size() - 1);
    std::size_t owner = 0;
    for (std::size_t i = 0; i < touched.size();) {
        while (touched[i] >= bounds[owner + 1]) ++owner;
        std::size_t end = i + 1;
        while (end < touched.size() && touched[end] == touched[end - 1] + 1 && touched[end] < bounds[owner + 1]) ++end;
        out[owner].push_back(touched[i]);
        out[owner].push_back(static_cast<std::int64_t>(end - i));
        i = end;
    }
    return out;
}

std::int64_t Signature::count() const {
    std::int64_t total = 0;
    for (const Interval& run : indices) total += run.count;
    return total;
}

std::vector<Signature> signatures(const std::vector<std::pair<std::int32_t, Interval>>& touched, Interval owned,
                                  std::int64_t coarsen) {
    // Where ranks come and go, in units of `coarsen` indices.
    struct Change {
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
    std::vector<Change> changes;
    for (const auto& [rank, run] : runs) {
        if (!changes.empty() && changes.back().rank == rank && run.first <= changes.back().unit) {
            changes.back().unit = std::max(changes.back().unit, run.end());
            continue;
        }
        changes.push_back({run.first, true, rank});
        changes.push_back({run.end(), false, rank});
    }
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.unit < b.unit; });

    std::vector<Signature> out;
    std::map<std::vector<std::int32_t>, std::size_t> known;
    std::set<std::int32_t> here;
    for (std::size_t i = 0; i < changes.size();) {
        const std::int64_t unit = changes[i].unit;
        for (; i < changes.size() && changes[i].unit == unit; ++i) {
            if (changes[i].comes)
                here.insert(changes[i].rank);
            else
                here.erase(changes[i].rank);
        }
        if (here.empty()) continue;
        std::vector<std::int32_t> contributors(here.begin(), here.end());
        const auto [at, fresh] = known.try_emplace(contributors, out.size());
        if (fresh) out.push_back({std::move(contributors), {}});
        const std::int64_t first = std::max(owned.first, unit * coarsen);
        const std::int64_t end = std::min(owned.end(), changes[i].unit * coarsen);
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

void write_runs(Words& out, const std::vector<Interval>& runs) {
    out.push_back(static_cast<std::int64_t>(runs.size()));
    for (const Interval& run : runs) out.push_back(run.first), out.push_back(run.count);
}

}  // namespace

void write(Words& out, std::int64_t number, const Signature& signature, bool indices) {
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

Composition owners_composition(std::int32_t ranks, const std::vector<Signature>& signatures, Rank owner,
                               const Operation& operation) {
    std::vector<SparseBlock> known;
    for (const Signature& one : signatures)
        known.push_back({std::ssize(known), owner, one.count(), RankSet::of(one.contributors), {}});
    return sparse_composition(ranks, std::ssize(known), known, 1, 1, operation, false);
}

std::vector<Words> blocks_by_rank(const std::vector<Signature>& signatures, std::int64_t first_number,
                                  const Composition& composition, const Factory& factory) {
    std::vector<Words> out(static_cast<std::size_t>(composition.ranks()));
    composition.visit([&](std::int32_t phase, const Primitive& primitive) {
        const std::int64_t block = primitive.blocks.first;
        for (const std::int32_t rank : factory.ranks_of(phase, primitive)) {
            const bool needs_indices = rank == primitive.root.value || primitive.others.contains(rank);
            write(out[static_cast<std::size_t>(rank)], first_number + block,
                  signatures[static_cast<std::size_t>(block)], needs_indices);
        }
    });
    return out;
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
