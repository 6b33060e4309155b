// Formulas of exchanges among all ranks (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005), with links that ranks of a group share.
#include <algorithm>
#include <cmath>

#include "palmette/collectives/tree_shape.hpp"
#include "palmette/model/estimate_families.hpp"

namespace palmette::model {
namespace {

/// The slowest hop of a ring over all positions, `bytes` each.
double ring_hop_s(const Tiers& tiers, double bytes, double each) {
    double longest = 0;
    for (std::size_t t = 0; t < tiers.count(); ++t) {
        const double around = t == 0 ? tiers.ranks() : tiers[t - 1].ranks;
        const double own = t + 1 == tiers.count() ? 1 : tiers[t].ranks;
        if (around <= own || around <= each) continue;
        longest = std::max(longest, tiers.transfer(t, bytes) * (tiers[t].inside ? 2 : 1));
    }
    return longest;
}

double ring_latency_s(const Tiers& tiers, double each) {
    double longest = 0;
    for (std::size_t t = 0; t < tiers.count(); ++t) {
        const double around = t == 0 ? tiers.ranks() : tiers[t - 1].ranks;
        const double own = t + 1 == tiers.count() ? 1 : tiers[t].ranks;
        if (around > own && around > each) longest = std::max(longest, tiers[t].latency_s);
    }
    return longest;
}

/// What the leader of a node spends on taking from, or giving to, the others of it.
double node_s(const Asked& asked, double bytes, std::string_view inside, bool combine) {
    const double members = asked.tiers.node().ranks;
    if (members <= 1) return 0;
    const Tier& tier = asked.tiers.side_by_side();
    const double one = bytes / tier.stream + tier.overhead_s + (combine ? asked.tiers.reduce_s(bytes) : 0);
    if (inside == "linear") return tier.latency_s + (members - 1) * one;
    if (inside == "shared")
        return 2 * tier.latency_s + asked.tiers.copy_s(bytes) + (combine ? asked.tiers.reduce_s(bytes) : 0);
    return std::ceil(std::log2(members)) * (tier.latency_s + one);
}

}  // namespace

std::optional<double> estimate_block_exchange(const Asked& asked, std::string_view pattern, double bytes, double each) {
    const Tiers& tiers = asked.tiers;
    const double parts = std::ceil(tiers.ranks() / each);
    if (pattern == "ring") {
        const double cuts = asked.segments(bytes);
        const double hop = ring_hop_s(tiers, bytes, each);
        const double latency = ring_latency_s(tiers, each);
        // Segments of a block follow each other, so that only one of them waits for the latency.
        return std::max((parts - 1) * hop, (parts - 1) * (latency + hop / cuts)) + (cuts > 1 ? latency : 0);
    }
    double total = 0;
    if (pattern == "recursive_doubling") {
        for (double d = 1; d < parts; d *= 2) total += tiers.round(d * each, d * bytes, Partners::flip, each);
        return total;
    }
    if (pattern.starts_with("bruck")) {
        const double radix = pattern.size() > 6 ? std::stod(std::string(pattern.substr(6))) : 2;
        for (double d = 1; d < parts; d *= radix)
            for (double digit = 1; digit < radix && digit * d < parts; ++digit)
                total += tiers.round(digit * d * each, std::min(d, parts - digit * d) * bytes, Partners::shift, each) -
                         (digit > 1 ? tiers[tiers.crossed(d * each)].latency_s : 0);
        return total;
    }
    return std::nullopt;
}

std::optional<double> estimate_all_blocks(const Asked& asked) {
    const Tiers& tiers = asked.tiers;
    const double m = asked.bytes, p = tiers.ranks();
    const double combined = asked.combines ? tiers.reduce_s(m * (p - 1)) : 0;
    const std::string_view name = asked.spec.name;
    if (name == "ring") {
        const auto time = estimate_block_exchange(asked, "ring", m, 1);
        return time ? std::optional(*time + combined) : std::nullopt;
    }
    if (name == "recursive_doubling" || name == "recursive_halving") {
        const auto time = estimate_block_exchange(asked, "recursive_doubling", m, 1);
        return time ? std::optional(*time + combined) : std::nullopt;
    }
    if (name == "bruck")
        return estimate_block_exchange(asked, "bruck." + std::to_string(asked.spec.integer("radix", 2, 2)), m, 1);
    if (name == "linear" || name == "direct") return tiers.everybody(m) + combined;
    if (name != "leaders" || asked.spec.integer("leaders", 1) != 1 || asked.spec.find("level")) return std::nullopt;
    const double group = tiers.node().ranks, nodes = tiers.nodes();
    const std::string_view inside = asked.spec.find("inside").value_or("linear");
    if (asked.combines) {
        // Vectors to the leader, the other nodes' blocks straight to their leaders, every member its block.
        double exchange = nodes > 1 ? tiers.round(group, m * group, Partners::shift, group) : 0;
        for (std::size_t t = 0; t + 1 < tiers.count(); ++t)
            if (!tiers[t].inside && tiers[t].edge > 0 && tiers[t].ranks < p)
                exchange = std::max(exchange, (p - tiers[t].ranks) * m * tiers[t].ranks / group / tiers[t].edge);
        return node_s(asked, m * p, inside, true) + exchange + tiers.reduce_s(m * group * (nodes - 1)) +
               node_s(asked, m, "linear", false);
    }
    const std::string_view between = asked.spec.find("between").value_or("ring");
    const auto exchange =
        nodes > 1 ? estimate_block_exchange(asked, between, m * group, group) : std::optional<double>(0.0);
    if (!exchange) return std::nullopt;
    const double collected = node_s(asked, inside == "linear" ? m : m * group / 2, inside, false);
    const double handed_out = node_s(asked, m * p, inside, false);
    // What comes in is handed on at once: round a ring the node's copies hide behind the links, or the other way about.
    if (between == "ring") return collected + std::max(*exchange, handed_out) + handed_out / nodes;
    return collected + *exchange + handed_out;
}

std::optional<double> estimate_allreduce(const Asked& asked) {
    const Tiers& tiers = asked.tiers;
    const double n = asked.bytes, p = tiers.ranks();
    const std::string_view name = asked.spec.name;
    const auto doubling = [&](double each) {
        double total = 0;
        for (double d = 1; d * each < p; d *= 2)
            total += tiers.round(d * each, n, Partners::flip, each) + tiers.reduce_s(n);
        return total;
    };
    const auto halving = [&](double each) {
        double total = 0, part = n;
        for (double d = 1; d * each < p; d *= 2) {
            part /= 2;
            total += 2 * tiers.round(d * each, part, Partners::flip, each) + tiers.reduce_s(part);
        }
        return total;
    };
    if (name == "recursive_doubling") return doubling(1);
    if (name == "all") return tiers.everybody(n) + tiers.reduce_s(n * (p - 1));
    if (name == "rabenseifner") return halving(1);
    if (name == "ring") {
        const auto half = estimate_block_exchange(asked, "ring", n / p, 1);
        return half ? std::optional(2 * *half + tiers.reduce_s(n * (p - 1) / p)) : std::nullopt;
    }
    if (name != "leaders" || asked.spec.find("leaders") || asked.spec.find("level") || asked.spec.find("segment"))
        return std::nullopt;
    const std::string_view between = asked.spec.find("between").value_or("recursive_doubling");
    const std::string_view inside = asked.spec.find("inside").value_or("linear");
    const double group = tiers.node().ranks, nodes = tiers.nodes();
    double exchange = 0;
    if (nodes > 1) {
        if (between == "recursive_doubling")
            exchange = doubling(group);
        else if (between == "rabenseifner")
            exchange = halving(group);
        else if (between == "ring")
            exchange = 2 * estimate_block_exchange(asked, "ring", n / nodes, group).value_or(0) + tiers.reduce_s(n);
        else
            return std::nullopt;
    }
    return node_s(asked, n, inside, true) + exchange + node_s(asked, n, inside, false);
}

std::optional<double> estimate_alltoall(const Asked& asked) {
    const Tiers& tiers = asked.tiers;
    const double b = asked.bytes, p = tiers.ranks();
    const std::string_view name = asked.spec.name;
    if (name == "linear" || name == "pairwise") return tiers.everybody(b);
    if (name == "bruck" && asked.spec.integer("radix", 2, 2) == 2) {
        double total = 0;
        for (double d = 1; d < p; d *= 2)
            total += tiers.round(d, b * p / 2, Partners::shift) + 2 * tiers.copy_s(b * p / 2);
        return total;
    }
    if (name != "node_aware" || asked.spec.find("level") || asked.spec.find("segment")) return std::nullopt;
    const double group = tiers.node().ranks, nodes = tiers.nodes();
    const Tier& side = tiers.side_by_side();
    double links = 0, work = 0;
    for (std::size_t t = 0; t + 1 < tiers.count(); ++t)
        if (!tiers[t].inside && tiers[t].edge > 0 && tiers[t].ranks < p)
            links = std::max(links, tiers[t].ranks * (p - tiers[t].ranks) * b / tiers[t].edge);
    work = (nodes - 1) * 2 * tiers.node().overhead_s;
    const double handed_on =
        group > 1 ? side.latency_s + 2 * (group - 1) * (nodes * b / side.stream + side.overhead_s) : 0;
    const double packed = 2 * tiers.copy_s(b * p);
    return (nodes > 1 ? tiers[0].latency_s : 0) + std::max(links, work) + handed_on + packed;
}

std::optional<double> estimate_barrier(const Asked& asked) {
    const Tiers& tiers = asked.tiers;
    double total = 0;
    if (asked.spec.name == "dissemination" && !asked.spec.find("inside")) {
        const double radix = asked.spec.integer("radix", 2, 2);
        // Everybody waits for whom the shift takes farthest: over a group's end also where most partners are inside of it.
        for (double d = 1; d < tiers.ranks(); d *= radix) {
            const Tier& tier = tiers[tiers.crossed(std::min(radix * d, tiers.ranks() - 1))];
            total += tier.latency_s + (radix - 2) * 2 * tier.overhead_s;
        }
        return total;
    }
    if (asked.spec.name != "leaders" || !asked.spec.options.empty()) return std::nullopt;
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

std::optional<double> estimate_scan(const Asked& asked) {
    const Tiers& tiers = asked.tiers;
    const double n = asked.bytes, p = tiers.ranks();
    const std::string_view name = asked.spec.name;
    if (name == "all") return tiers.everybody(n) + tiers.reduce_s(n * (p - 1));
    if (name == "recursive_doubling") {
        double total = 0;
        for (double d = 1; d < p; d *= 2) total += tiers.round(d, n, Partners::shift) + tiers.reduce_s(n);
        return total;
    }
    if (name != "linear") return std::nullopt;
    const double cuts = asked.segments(n);
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

std::optional<double> estimate_shared(const Asked& asked, plan::Collective collective) {
    using plan::Collective;
    const Tiers& tiers = asked.tiers;
    const double n = asked.bytes, p = tiers.ranks();
    const double signal = tiers.side_by_side().latency_s;
    switch (collective) {
        case Collective::bcast:
            return signal + 2 * tiers.copy_s(n);
        case Collective::gather:
        case Collective::scatter:
        case Collective::allgather:
        case Collective::alltoall:
            return signal + tiers.copy_s(n) + tiers.copy_s(n * p);
        case Collective::barrier:
            return 2 * signal;
        default:
            return 2 * signal + 2 * tiers.copy_s(n) + tiers.reduce_s(n);
    }
}

}  // namespace palmette::model
