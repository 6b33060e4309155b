// Formulas of barriers, of scans, and of all collectives through the shared memory of one node.
#include <algorithm>
#include <cmath>

#include "palmette/model/estimate/estimate_families.hpp"

namespace palmette::model {

double shared_in_node(const Tiers& tiers, double bytes, double readers, double combined) {
    // Reading another rank's flag misses the cache.
    const double misses = std::max(combined, 1.0) * assumed::cache_miss_s;
    const double read = misses + (combined > 0 ? tiers.pull_reduce_s(combined * bytes) : tiers.copy_s(bytes));
    return tiers.intra_node().latency_s + tiers.copy_s(bytes) +
           std::max(read, tiers.memory_s(std::max(readers, combined) * bytes));
}

std::optional<double> estimate_barrier(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    double total = 0;
    if (input.spec.name == "dissemination" && input.spec.find("inside").value_or("shared") == "shared") {
        const bool nodes_alone = input.spec.find("inside").has_value();
        if (nodes_alone && !input.shares) return std::nullopt;
        if (nodes_alone && tiers.node().ranks > 1) total += 2 * tiers.intra_node().latency_s;
        const double radix = input.spec.integer("radix", 2, 2);
        // All ranks wait for the pair at the longest distance: across a group's boundary even where most partners are
        // inside of it.
        const double first = nodes_alone ? tiers.node().ranks : 1;
        for (double d = first; d < tiers.ranks(); d *= radix) {
            const Tier& tier = tiers[tiers.crossed(std::min(radix * d, tiers.ranks() - 1))];
            total += tier.latency_s + (radix - 2) * 2 * tier.overhead_s;
        }
        return total;
    }
    if (input.spec.name != "leaders" || !input.spec.options.empty()) return std::nullopt;
    // Up to the leaders of the outermost level, across once, and down again.
    for (std::size_t t = 0; t < tiers.count(); ++t) {
        const double around = t == 0 ? tiers.ranks() : tiers[t - 1].ranks;
        const double own = t + 1 == tiers.count() ? 1 : tiers[t].ranks;
        const double members = std::ceil(around / own);
        if (members <= 1) continue;
        const double star = tiers[t].latency_s + (members - 2) * tiers[t].overhead_s;
        const double tree = std::ceil(std::log2(members)) * tiers[t].latency_s;
        if (t == 0)
            total += members <= 16 ? star + (members - 1) * tiers[t].overhead_s : tree;
        else
            total += 2 * (members < 9 ? star : tree);
    }
    return total;
}

std::optional<double> estimate_scan(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    const double n = input.bytes, p = tiers.ranks();
    const std::string_view name = input.spec.name;
    if (name == "all") return tiers.all_to_all(n) + tiers.reduce_s(n * (p - 1));
    if (name == "recursive_doubling") {
        double total = 0;
        for (double d = 1; d < p; d *= 2) total += tiers.round(d, n, Partners::shift) + tiers.reduce_s(n);
        return total;
    }
    if (name != "linear") return std::nullopt;
    const double cuts = input.segments(n);
    double first = 0, hop = 0, inner = 1;
    for (std::size_t t = tiers.count(); t-- > 0;) {
        const double around = t == 0 ? p : tiers[t - 1].ranks;
        if (around <= inner) continue;
        const double crossings = p / inner - p / around;
        first += crossings * (tiers.message(t, n / cuts) + tiers.reduce_s(n / cuts));
        hop = std::max(hop, tiers.transfer(t, n / cuts) * (tiers[t].inside ? 2 : 1) + 2 * tiers[t].overhead_s);
        inner = around;
    }
    return first + (cuts - 1) * hop;
}

std::optional<double> estimate_shared(const FormulaInput& input, plan::Collective collective) {
    using plan::Collective;
    const Tiers& tiers = input.tiers;
    const double n = input.bytes, p = tiers.ranks();
    const double signal = tiers.intra_node().latency_s;
    switch (collective) {
        case Collective::bcast:
            return signal + tiers.copy_s(n) + std::max(tiers.copy_s(n), tiers.memory_s((p - 1) * n));
        case Collective::gather:
        case Collective::scatter:
        case Collective::allgather:
        case Collective::alltoall:
            return signal + tiers.copy_s(n) +
                   std::max(tiers.copy_s(n * p), collective == Collective::gather || collective == Collective::scatter
                                                     ? 0.0
                                                     : tiers.memory_s(n * p * p));
        case Collective::barrier:
            return 2 * signal;
        default:
            // Each rank combines its share of all vectors, and all read the shares.
            return 2 * signal + tiers.copy_s(n) +
                   std::max(tiers.pull_reduce_s(n * (p - 1) / p), tiers.memory_s(n * p)) +
                   std::max(tiers.copy_s(n), tiers.memory_s(n * p));
    }
}

}  // namespace palmette::model
