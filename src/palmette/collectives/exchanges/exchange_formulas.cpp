#include "palmette/collectives/exchanges/exchange_formulas.hpp"

#include <charconv>
#include <cmath>

#include "palmette/base/error.hpp"
#include "palmette/collectives/exchanges/exchange.hpp"

namespace palmette::collectives {
namespace {

/// The radix suffix of a pattern's name, 2 or more. Throws base::Error naming the specification.
double radix_suffix(const FormulaInput& input, std::string_view text) {
    int radix = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, radix);
    if (error != std::errc() || stop != end || radix < 2)
        base::fail("algorithm '", input.spec.text(), "': '", text, "' is not a number of 2 or more");
    return radix;
}

/// The slowest hop of a ring over all positions, `bytes` each.
double ring_hop_s(const Tiers& tiers, double bytes, double each) {
    double longest = 0;
    for (std::size_t t = 0; t < tiers.count(); ++t) {
        const double around = t == 0 ? tiers.ranks() : tiers[t - 1].ranks;
        const double own = t + 1 == tiers.count() ? 1 : tiers[t].ranks;
        if (around <= own || around <= each) continue;
        longest = std::max(longest, tiers.transfer(t, bytes) * (tiers[t].inside ? 2 : 1));
        if (tiers[t].inside) longest = std::max(longest, tiers.memory_s((tiers.node().ranks - 1) / each * bytes));
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

/// How long the first segment of a block is on its way round a ring, hop by hop.
double ring_way_s(const Tiers& tiers, double bytes, double each, double cuts) {
    const double parts = std::ceil(tiers.ranks() / each);
    if (!tiers.in_topology_order())
        return (parts - 1) * (ring_latency_s(tiers, each) + ring_hop_s(tiers, bytes, each) / cuts);
    double total = 0, before = 1;
    for (std::size_t t = 0; t < tiers.count(); ++t) {
        const bool last = t + 1 == tiers.count();
        const double groups = std::min(last ? tiers.ranks() : tiers[t].groups, parts);
        if (groups <= before) continue;
        const double hop = tiers.transfer(t, bytes) * (tiers[t].inside ? 2 : 1);
        total += (groups - before) * (tiers[t].latency_s + hop / cuts);
        before = groups;
    }
    return total;
}

/// A nested ring, closed inside of each group, so that every block but the group's own crosses the group's edge once.
/// `cuts`: pipeline segments of a block.
double nested_ring_s(const Tiers& tiers, double bytes, double cuts) {
    double links = 0, around = 1, closing = 0;
    for (std::size_t t = 0; t < tiers.count(); ++t) {
        const bool last = t + 1 == tiers.count();
        const double groups = last ? tiers.ranks() : tiers[t].groups;
        if (groups <= around) continue;
        const double hop = tiers.transfer(t, bytes) * (tiers[t].inside ? 2 : 1);
        // The last rank of a group that is larger than the next one returns more blocks than it doesn't forward.
        links = std::max(links, (tiers.ranks() - (last ? 1 : tiers[t].least) + closing) * hop);
        if (!last) closing += tiers[t].most - tiers[t].least;
        around = groups;
    }
    const double others = tiers.ranks() - 1, latency = ring_latency_s(tiers, 1);
    // A block is forwarded on arrival, a segment while others are still arriving.
    return std::max(
               {links, ring_way_s(tiers, bytes, 1, cuts), tiers.memory_s((tiers.node().ranks - 1) * others * bytes)}) +
           (cuts > 1 ? latency : 0);
}

}  // namespace

double ring_s(const FormulaInput& input, double bytes, double each, bool closes) {
    const Tiers& tiers = input.tiers;
    const double parts = std::ceil(tiers.ranks() / each);
    const double cuts = input.segments(bytes);
    const std::string_view nested = input.spec.find("nested").value_or("auto");
    const bool may_close = closes && tiers.in_topology_order() && nested != "no";
    if (may_close && nested == "yes") return nested_ring_s(tiers, bytes, cuts);
    const double hop = ring_hop_s(tiers, bytes, each);
    const double latency = ring_latency_s(tiers, each);
    // Segments of a block are pipelined, so that the latency counts once.
    const double plain = std::max((parts - 1) * hop, ring_way_s(tiers, bytes, each, cuts)) + (cuts > 1 ? latency : 0);
    return may_close ? std::min(plain, nested_ring_s(tiers, bytes, cuts)) : plain;
}

double doubling_s(const Tiers& tiers, double bytes, double each) {
    const double parts = std::ceil(tiers.ranks() / each);
    double total = 0;
    for (double d = 1; d < parts; d *= 2) total += tiers.round(d * each, d * bytes, Partners::flip, each);
    return total;
}

double bruck_s(const Tiers& tiers, double radix, double bytes, double each) {
    const double parts = std::ceil(tiers.ranks() / each);
    double total = 0;
    for (double d = 1; d < parts; d *= radix)
        for (double digit = 1; digit < radix && digit * d < parts; ++digit)
            total += tiers.round(digit * d * each, std::min(d, parts - digit * d) * bytes, Partners::shift, each) -
                     (digit > 1 ? tiers[tiers.crossed(d * each)].latency_s : 0);
    return total;
}

double skips_s(const Tiers& tiers, std::string_view pattern, double bytes, double stride, double each) {
    const auto n = static_cast<std::int32_t>(std::ceil(tiers.ranks() / stride));
    double total = 0;
    for (const SkipStep& step : pattern == "pat" ? pat_steps(n) : circulant_steps(n)) {
        // The other way round the circle may be shorter.
        const std::int32_t distance = std::min(step.skip, n - step.skip);
        total += tiers.round(distance * stride, step.count * bytes, Partners::shift, each);
        // Contributions with gaps between them are packed and unpacked.
        if (step.stride > 1 && step.count > 1) total += 2 * tiers.copy_s(step.count * bytes);
    }
    return total;
}

std::optional<double> block_exchange_s(const FormulaInput& input, std::string_view pattern, double bytes, double each) {
    if (pattern == "ring") return ring_s(input, bytes, each, false);
    if (pattern == "recursive_doubling") return doubling_s(input.tiers, bytes, each);
    if (pattern.starts_with("bruck")) {
        const double radix = pattern.size() > 6 ? radix_suffix(input, pattern.substr(6)) : 2;
        return bruck_s(input.tiers, radix, bytes, each);
    }
    if (pattern == "circulant" || pattern == "pat") return skips_s(input.tiers, pattern, bytes, each, each);
    return std::nullopt;
}

std::optional<double> vector_exchange_s(const FormulaInput& input, std::string_view pattern, double n, double stride,
                                        double each) {
    const Tiers& tiers = input.tiers;
    const double p = tiers.ranks(), parts = std::ceil(p / stride);
    if (parts <= 1) return 0.0;
    double radix = 0;
    if (pattern == "recursive_doubling" || pattern == "rabenseifner") radix = 2;
    if (pattern == "recursive_multiplying") radix = 4;
    if (pattern.starts_with("recursive_multiplying."))
        radix = radix_suffix(input, pattern.substr(pattern.find('.') + 1));
    if (pattern == "circulant" || pattern == "pat")
        return 2 * skips_s(tiers, pattern, n / parts, stride, each) + tiers.reduce_s(n * (parts - 1) / parts);
    if (pattern == "ring") return 2 * ring_s(input, n / parts, stride, false) + tiers.reduce_s(n * (parts - 1) / parts);
    if (pattern == "all") {
        if (stride == 1) return tiers.all_to_all(n) + tiers.reduce_s(n * (parts - 1));
        return tiers.between_nodes((parts - 1) / each, n) + tiers.reduce_s(n * (parts - 1));
    }
    if (radix == 0) return std::nullopt;
    double whole = 1;  // ranks beyond the largest power of the radix are folded in first, and receive the result
    while (whole * radix <= parts) whole *= radix;
    double total = 0;
    if (whole < parts && radix == 2) {
        total += 2 * tiers.round(stride, n, Partners::flip, each) + tiers.reduce_s(n);
    }
    const double all = radix == 2 ? whole : parts;
    double part = n;
    for (double d = 1; d < all; d *= radix) {
        const double partners = std::min(radix, std::ceil(all / d)) - 1;
        // Sends to one partner overlap with receives from others.
        const double more = (partners - 1) * tiers[tiers.crossed(d * stride)].overhead_s;
        if (pattern == "rabenseifner") {
            part /= 2;
            total += 2 * tiers.round(d * stride, part, Partners::flip, each) + tiers.reduce_s(part);
        } else {
            // The farthest partner determines which links are crossed.
            const double distance = std::max(1.0, (partners + 1) / 2) * d * stride;
            total += tiers.round(distance, n * partners, Partners::flip, each) + more + tiers.reduce_s(n * partners);
        }
    }
    return total;
}

double leader_in_node_s(const FormulaInput& input, double bytes, std::string_view inside, bool combine) {
    const double members = input.tiers.node().ranks;
    if (members <= 1) return 0;
    const Tier& tier = input.tiers.intra_node();
    const double one = bytes / tier.stream + tier.overhead_s + (combine ? input.tiers.reduce_s(bytes) : 0);
    if (inside == "shared" && input.shares)
        return shared_in_node_s(input.tiers, bytes, combine ? 1 : members - 1, combine ? members - 1 : 0);
    if (inside == "linear" || inside == "shared")
        return tier.latency_s + std::max((members - 1) * one, input.tiers.memory_s((members - 1) * bytes));
    return std::max(std::ceil(std::log2(members)) * (tier.latency_s + one),
                    input.tiers.memory_s((members - 1) * bytes));
}

double split_in_node_s(const FormulaInput& input, std::string_view inside, double n, bool combine, bool pieces) {
    const Tiers& tiers = input.tiers;
    const double group = tiers.node().ranks;
    if (group <= 1) return 0;
    const double parts = std::min(group, tiers.nodes());  // at most one per node piece
    if (pieces && parts < group) {
        // Only some ranks own a part, which they receive from all others of the node, or send to them.
        const Tier& side = tiers.intra_node();
        const double one = side.overhead_s + n / parts / side.stream + (combine ? tiers.reduce_s(n / parts) : 0);
        return side.latency_s + std::max((group - 1) * one, tiers.memory_s((group - 1) * n));
    }
    const double share = n * (group - 1) / group;
    const double combined = combine ? tiers.reduce_s(share) : 0;
    if (inside == "shared" && input.shares)
        return tiers.intra_node().latency_s + tiers.copy_s(n) +
               std::max(
                   (group - 1) * assumed::cache_miss_s + (combine ? tiers.pull_reduce_s(share) : tiers.copy_s(share)),
                   tiers.memory_s((group - 1) * n));
    if (inside == "direct" || inside == "linear" || inside == "shared")
        return tiers.within_node(group - 1, n / group) + combined;
    double radix = 2;
    if (inside.starts_with("halving.")) radix = radix_suffix(input, inside.substr(8));
    double total = combined, part = n;
    for (double members = 1; members < group; members *= radix) {
        const double peers = std::min(radix, std::ceil(group / members));
        part /= peers;
        total += tiers.within_node(peers - 1, part);
    }
    return total;
}

double summed_in_node_s(const Tiers& tiers, double n) {
    double total = 0;
    for (double members = 1; members < tiers.node().ranks; members *= 4) {
        const double peers = std::min(4.0, std::ceil(tiers.node().ranks / members)) - 1;
        total += tiers.within_node(peers, n) + tiers.reduce_s(n * peers);
    }
    return total;
}

std::optional<double> node_pieces_formula(const FormulaInput& input) {
    const Collective what = input.request.collective;
    const Tiers& tiers = input.tiers;
    const double nodes = tiers.nodes(), group = tiers.node().ranks;
    if (nodes <= 1) return std::nullopt;
    const double cuts = input.segments(input.bytes);
    const double n = input.bytes / cuts, piece = n / nodes;
    const std::string_view inside = input.spec.find("inside").value_or("direct");
    const double messages = (nodes - 1) / std::min(group, nodes);
    // Only the root's node sends or receives all pieces.
    const auto rooted = [&](double each) {
        // A broadcast's messages carry the piece of the root's node as well.
        const double wires = tiers.from_root(what == Collective::bcast ? 2 * piece : piece);
        return tiers[0].latency_s + std::max(wires, (std::ceil(each) - 1) * tiers.busy(0, piece));
    };
    // A node of few ranks has as many messages as the others, but fewer ranks to send them.
    const double busiest = (std::ceil((nodes - 1) / std::min(tiers.fewest(), nodes)) - 1) * 2 * tiers.busy(0, piece);
    const double exchanged = std::max(tiers.between_nodes(messages, piece), tiers[0].latency_s + busiest);
    double memory = 0, links = 0;
    if (what == Collective::bcast) {
        const bool alone = input.spec.find("relays").value_or("all") == "1";
        // The root's node sends one piece to each other node; its ranks need the data first.
        const double first = rooted(alone ? nodes - 1 : messages);
        if (!alone && group > 1)
            memory += tiers.intra_node().latency_s + tiers.memory_s(n) + (group - 1) * tiers.intra_node().overhead_s;
        memory += group > 1 ? tiers.within_node(1, piece) + (group - 1) * tiers.intra_node().overhead_s : 0;
        memory += split_in_node_s(input, inside, n, false, true);
        links = first + exchanged;
    } else {
        memory = split_in_node_s(input, inside, n, true, true);
        links = exchanged + tiers.reduce_s(n / std::min(group, nodes));
        if (what == Collective::allreduce) {
            if (group > 1) memory += summed_in_node_s(tiers, piece);
            memory += split_in_node_s(input, inside, n, false, true);
            links += exchanged;
        } else {
            const double receivers = std::min(group, nodes - 1) - 1;  // other ranks of the node that received pieces
            if (receivers > 0)
                memory += tiers.intra_node().latency_s +
                          receivers * (tiers.intra_node().overhead_s + piece / tiers.intra_node().stream) +
                          tiers.memory_s(receivers * piece);
            links += rooted(messages);
            if (group > 1)
                memory +=
                    tiers.intra_node().latency_s + tiers.memory_s(n) + (group - 1) * tiers.intra_node().overhead_s;
        }
    }
    // Slices are pipelined: intra-node work on one overlaps with the transfer of another.
    return memory + links + (cuts - 1) * std::max(memory, links);
}

}  // namespace palmette::collectives
