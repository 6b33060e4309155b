// Formulas of non-rooted collectives (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005), with contention of the ranks of
// a group for its link.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "palmette/base/error.hpp"
#include "palmette/collectives/exchanges/exchange.hpp"
#include "palmette/collectives/trees/tree_shape.hpp"
#include "palmette/model/estimate/estimate_families.hpp"

namespace palmette::model {
namespace {

/// The radix suffix of a pattern's name, 2 or more. Throws base::Error naming the specification.
double radix_of(const FormulaInput& input, std::string_view text) {
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

/// How long the first segment of a block is on its way round a ring of `parts`, hop by hop.
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
    return std::max({links, ring_way_s(tiers, bytes, 1, cuts),
                     tiers.memory_s((tiers.node().ranks - 1) * others * bytes)}) +
           (cuts > 1 ? latency : 0);
}

/// Circulant graphs and PAT among ranks at stride `stride`; one of each `each` ranks takes part concurrently.
double skips_s(const Tiers& tiers, std::string_view pattern, double bytes, double stride, double each) {
    const auto n = static_cast<std::int32_t>(std::ceil(tiers.ranks() / stride));
    double total = 0;
    for (const collectives::SkipStep& step :
         pattern == "pat" ? collectives::pat_steps(n) : collectives::circulant_steps(n)) {
        // The other way round the circle may be shorter.
        const std::int32_t distance = std::min(step.skip, n - step.skip);
        total += tiers.round(distance * stride, step.count * bytes, Partners::shift, each);
        // Contributions with gaps between them are packed and unpacked.
        if (step.stride > 1 && step.count > 1) total += 2 * tiers.copy_s(step.count * bytes);
    }
    return total;
}

double split_in_node(const FormulaInput& input, std::string_view inside, double n, bool combine, bool pieces = false);

/// Time of a leader to collect from, or distribute to, the other ranks of its node.
double node_s(const FormulaInput& input, double bytes, std::string_view inside, bool combine) {
    const double members = input.tiers.node().ranks;
    if (members <= 1) return 0;
    const Tier& tier = input.tiers.intra_node();
    const double one = bytes / tier.stream + tier.overhead_s + (combine ? input.tiers.reduce_s(bytes) : 0);
    if (inside == "shared" && input.shares)
        return shared_in_node(input.tiers, bytes, combine ? 1 : members - 1, combine ? members - 1 : 0);
    if (inside == "linear" || inside == "shared")
        return tier.latency_s + std::max((members - 1) * one, input.tiers.memory_s((members - 1) * bytes));
    return std::max(std::ceil(std::log2(members)) * (tier.latency_s + one),
                    input.tiers.memory_s((members - 1) * bytes));
}

}  // namespace

std::optional<double> estimate_block_exchange(const FormulaInput& input, std::string_view pattern, double bytes,
                                              double each) {
    const Tiers& tiers = input.tiers;
    const double parts = std::ceil(tiers.ranks() / each);
    if (pattern == "ring") {
        const double cuts = input.segments(bytes);
        const bool closes = input.spec.name == "ring" || input.spec.name == "scatter_allgather";
        const std::string_view nested = input.spec.find("nested").value_or("auto");
        const bool may_close = closes && tiers.in_topology_order() && nested != "no";
        if (may_close && nested == "yes") return nested_ring_s(tiers, bytes, cuts);
        const double hop = ring_hop_s(tiers, bytes, each);
        const double latency = ring_latency_s(tiers, each);
        // Segments of a block are pipelined, so that the latency counts once.
        const double plain =
            std::max((parts - 1) * hop, ring_way_s(tiers, bytes, each, cuts)) + (cuts > 1 ? latency : 0);
        return may_close ? std::min(plain, nested_ring_s(tiers, bytes, cuts)) : plain;
    }
    double total = 0;
    if (pattern == "recursive_doubling") {
        for (double d = 1; d < parts; d *= 2) total += tiers.round(d * each, d * bytes, Partners::flip, each);
        return total;
    }
    if (pattern.starts_with("bruck")) {
        const double radix = pattern.size() > 6 ? radix_of(input, pattern.substr(6)) : 2;
        for (double d = 1; d < parts; d *= radix)
            for (double digit = 1; digit < radix && digit * d < parts; ++digit)
                total += tiers.round(digit * d * each, std::min(d, parts - digit * d) * bytes, Partners::shift, each) -
                         (digit > 1 ? tiers[tiers.crossed(d * each)].latency_s : 0);
        return total;
    }
    if (pattern == "circulant" || pattern == "pat") return skips_s(tiers, pattern, bytes, each, each);
    return std::nullopt;
}

std::optional<double> estimate_all_blocks(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    const double m = input.bytes, p = tiers.ranks();
    const double combined = input.combines ? tiers.reduce_s(m * (p - 1)) : 0;
    const std::string_view name = input.spec.name;
    if (name == "ring") {
        const auto time = estimate_block_exchange(input, "ring", m, 1);
        return time ? std::optional(*time + combined) : std::nullopt;
    }
    if (name == "recursive_doubling" || name == "recursive_halving") {
        const auto time = estimate_block_exchange(input, "recursive_doubling", m, 1);
        // Ranks beyond the largest power of two hand in all they have first.
        const bool folds = input.combines && std::exp2(std::floor(std::log2(p))) < p;
        const double folded = folds ? tiers.message(tiers.crossed(1), m * p) + tiers.reduce_s(m * p) : 0;
        return time ? std::optional(*time + combined + folded) : std::nullopt;
    }
    if (name == "circulant" || name == "pat") {
        const auto time = estimate_block_exchange(input, name, m, 1);
        return time ? std::optional(*time + combined) : std::nullopt;
    }
    if (name == "bruck")
        return estimate_block_exchange(input, "bruck." + std::to_string(input.spec.integer("radix", 2, 2)), m, 1);
    if (name == "linear" || name == "direct") return tiers.all_to_all(m) + combined;
    const double group = tiers.node().ranks, nodes = tiers.nodes();
    if (name == "locality_bruck" && !input.combines) {
        // With nodes of different sizes the algorithm uses the radix of the smallest one.
        if (any_of(input, {"level", "radix"}) || nodes <= 1 || tiers.node().most > 2 * tiers.node().least)
            return std::nullopt;
        const bool shared = input.spec.find("inside") == "shared" && input.shares;
        // Every rank of a node has `bytes`, which all of them get.
        const auto shared_out = [&](double bytes) {
            if (group <= 1) return 0.0;
            if (!shared) return tiers.within_node(group - 1, bytes);
            return tiers.intra_node().latency_s + tiers.copy_s(bytes) +
                   std::max((group - 1) * assumed::cache_miss_s + tiers.copy_s((group - 1) * bytes),
                            tiers.memory_s(group * (group - 1) * bytes));
        };
        // In each round every rank of a node fetches the blocks of a different node, then the node shares them.
        double total = shared_out(m), have = 1;
        while (have < nodes) {
            const double more = std::min(have * std::max(1.0, tiers.node().least - 1), nodes - have);
            const double each = std::min(have, more);
            total += tiers.between_nodes(more / each / group, m * group * each) +
                     shared_out(m * group * more / std::max(1.0, group - 1));
            have += more;
        }
        return total;
    }
    if (name != "leaders" || any_of(input, {"level", "layout"})) return std::nullopt;
    std::string_view inside = input.spec.find("inside").value_or("linear");
    const bool all_lead = input.spec.find("leaders") == "all";
    const std::string_view scattered = input.spec.find("between").value_or("direct");
    if (all_lead && input.combines && inside == "shared") {
        // Each rank combines a share of the node's vectors, exchanges it with the ranks of its lane, and hands out what
        // has come together.
        const double steps =
            scattered == "direct" ? tiers.between_nodes(nodes - 1, m) : skips_s(tiers, scattered, m, group, 1);
        const double exchange = nodes > 1 ? steps + tiers.reduce_s(m * (nodes - 1)) : 0;
        return split_in_node(input, inside, m * p, true) + exchange +
               (group > 1 && input.shares
                    ? tiers.intra_node().latency_s + (group - 1) * assumed::cache_miss_s + 2 * tiers.copy_s(m)
                    : tiers.within_node(1, m));
    }
    if (all_lead) return std::nullopt;
    const double many = std::min(group, static_cast<double>(input.spec.integer("leaders", 1)));
    if (many > 1 && input.combines) return std::nullopt;
    if (inside == "shared" && !input.combines) {
        const std::string_view between = input.spec.find("between").value_or("ring");
        const auto exchange =
            nodes > 1 ? estimate_block_exchange(input, between, m * group, group) : std::optional<double>(0.0);
        if (!exchange) return std::nullopt;
        if (input.shares) {
            // Every rank exposes its block and reads the others'; a leader exposes its share of what arrives, and all
            // read all of it.
            const auto shared_out = [&](double exposed, double read, double pieces) {
                if (group <= 1) return 0.0;
                return tiers.intra_node().latency_s + tiers.copy_s(exposed) +
                       std::max(pieces * assumed::cache_miss_s + tiers.copy_s(read), tiers.memory_s(group * read));
            };
            const bool at_once = between == "ring";
            const double arrivals = at_once ? nodes - 1 : std::ceil(std::log2(std::max(2.0, nodes)));
            const double others = m * (p - group);
            const double out = nodes > 1 ? shared_out(others / many, others, many * arrivals) : 0.0;
            return shared_out(m, (group - 1) * m, group - 1) +
                   (at_once ? std::max(*exchange, out) + out / nodes : *exchange + out);
        }
        inside = "linear";
    }
    if (many > 1) {
        // Each leader collects the blocks of its share of the members, exchanges them with the leaders of its lane, and
        // forwards all that arrives.
        const double own = group / many;
        const std::string_view between = input.spec.find("between").value_or("ring");
        // All leaders of a node exchange concurrently, over the same links.
        const auto exchange =
            nodes > 1 ? estimate_block_exchange(input, between, m * group, group) : std::optional<double>(0.0);
        if (!exchange) return std::nullopt;
        const double links = *exchange;
        const Tier& side = tiers.intra_node();
        const bool at_once = between == "ring";
        const double arrivals = at_once ? nodes - 1 : std::ceil(std::log2(std::max(2.0, nodes)));
        // A rank receives all blocks and forwards its share of them: a leader to the whole node, or each rank to a few.
        const double forwarded = inside == "linear" ? (group - 1) / many : 1.5;
        const double depth = inside == "linear" ? group - 1 : std::ceil(std::log2(group));
        const double work = depth * arrivals * side.overhead_s + (1 + forwarded) * m * p / side.stream;
        const double distributed = std::max(work, tiers.memory_s((group - 1) * m * p));
        return 2 * side.latency_s + (own - 1) * side.overhead_s +
               (at_once ? std::max(links, distributed) + distributed / nodes : links + distributed);
    }
    if (input.combines) {
        // Vectors are reduced to the leader, blocks of other nodes go directly to their leaders, each member gets its
        // block.
        double exchange = nodes > 1 ? tiers.round(group, m * group, Partners::shift, group) : 0;
        for (std::size_t t = 0; t + 1 < tiers.count(); ++t)
            if (!tiers[t].inside && tiers[t].edge > 0 && tiers[t].ranks < p)
                exchange = std::max(exchange, (p - tiers[t].ranks) * m * tiers[t].ranks / group / tiers[t].edge);
        // Of a leader, whose messages are all outstanding at once.
        exchange = std::max(exchange, nodes > 1 ? tiers[0].latency_s + (nodes - 2) * 2 * tiers.busy(0, m * group) : 0);
        if (scattered != "direct" && nodes > 1) {
            const auto steps = estimate_block_exchange(input, scattered, m * group, group);
            if (!steps) return std::nullopt;
            exchange = *steps;
        }
        return node_s(input, m * p, inside, true) + exchange + tiers.reduce_s(m * group * (nodes - 1)) +
               node_s(input, m, "linear", false);
    }
    const std::string_view between = input.spec.find("between").value_or("ring");
    const auto exchange =
        nodes > 1 ? estimate_block_exchange(input, between, m * group, group) : std::optional<double>(0.0);
    if (!exchange) return std::nullopt;
    const double collected = node_s(input, inside == "linear" ? m : m * group / 2, inside, false);
    const double distributed = node_s(input, m * p, inside, false);
    // Arriving blocks are forwarded immediately: around a ring, intra-node copies overlap with inter-node transfers.
    if (between == "ring") return collected + std::max(*exchange, distributed) + distributed / nodes;
    return collected + *exchange + distributed;
}

namespace {

/// Allreduce of `n` bytes among ranks at stride `stride`; one of each `each` ranks of the job takes part concurrently.
std::optional<double> vector_exchange(const FormulaInput& input, std::string_view pattern, double n, double stride,
                                      double each) {
    const Tiers& tiers = input.tiers;
    const double p = tiers.ranks(), parts = std::ceil(p / stride);
    if (parts <= 1) return 0.0;
    double radix = 0;
    if (pattern == "recursive_doubling" || pattern == "rabenseifner") radix = 2;
    if (pattern == "recursive_multiplying") radix = 4;
    if (pattern.starts_with("recursive_multiplying.")) radix = radix_of(input, pattern.substr(pattern.find('.') + 1));
    if (pattern == "circulant" || pattern == "pat")
        return 2 * skips_s(tiers, pattern, n / parts, stride, each) + tiers.reduce_s(n * (parts - 1) / parts);
    if (pattern == "ring") {
        const auto half = estimate_block_exchange(input, pattern, n / parts, stride);
        return half ? std::optional(2 * *half + tiers.reduce_s(n * (parts - 1) / parts)) : std::nullopt;
    }
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

/// Intra-node reduce-scatter or, by time reversal, allgather of a vector: before or after it, each rank holds one
/// share. `pieces`: shares consist of whole node pieces.
double split_in_node(const FormulaInput& input, std::string_view inside, double n, bool combine, bool pieces) {
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
    if (inside.starts_with("halving.")) radix = radix_of(input, inside.substr(8));
    double total = combined, part = n;
    for (double members = 1; members < group; members *= radix) {
        const double peers = std::min(radix, std::ceil(group / members));
        part /= peers;
        total += tiers.within_node(peers - 1, part);
    }
    return total;
}

/// Intra-node allreduce or allgather, radix 4.
double summed_in_node(const FormulaInput& input, double n) {
    const Tiers& tiers = input.tiers;
    double total = 0;
    for (double members = 1; members < tiers.node().ranks; members *= 4) {
        const double peers = std::min(4.0, std::ceil(tiers.node().ranks / members)) - 1;
        total += tiers.within_node(peers, n) + tiers.reduce_s(n * peers);
    }
    return total;
}

}  // namespace

std::optional<double> estimate_node_pieces(const FormulaInput& input, NodePieces what) {
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
        const double wires = tiers.from_root(what == NodePieces::bcast ? 2 * piece : piece);
        return tiers[0].latency_s + std::max(wires, (std::ceil(each) - 1) * tiers.busy(0, piece));
    };
    // A node of few ranks has as many messages as the others, but fewer ranks to send them.
    const double busiest = (std::ceil((nodes - 1) / std::min(tiers.fewest(), nodes)) - 1) * 2 * tiers.busy(0, piece);
    const double exchanged = std::max(tiers.between_nodes(messages, piece), tiers[0].latency_s + busiest);
    double memory = 0, links = 0;
    if (what == NodePieces::bcast) {
        const bool alone = input.spec.find("relays").value_or("all") == "1";
        // The root's node sends one piece to each other node; its ranks need the data first.
        const double first = rooted(alone ? nodes - 1 : messages);
        if (!alone && group > 1)
            memory += tiers.intra_node().latency_s + tiers.memory_s(n) + (group - 1) * tiers.intra_node().overhead_s;
        memory += group > 1 ? tiers.within_node(1, piece) + (group - 1) * tiers.intra_node().overhead_s : 0;
        memory += split_in_node(input, inside, n, false, true);
        links = first + exchanged;
    } else {
        memory = split_in_node(input, inside, n, true, true);
        links = exchanged + tiers.reduce_s(n / std::min(group, nodes));
        if (what == NodePieces::allreduce) {
            if (group > 1) memory += summed_in_node(input, piece);
            memory += split_in_node(input, inside, n, false, true);
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

std::optional<double> estimate_allreduce(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    const double n = input.bytes, p = tiers.ranks();
    const std::string_view name = input.spec.name;
    if (name != "ring" && name != "node_pieces" && input.spec.find("segment")) return std::nullopt;
    if (name == "recursive_doubling" || name == "all" || name == "rabenseifner" || name == "ring" ||
        name == "circulant" || name == "pat")
        return vector_exchange(input, name, n, 1, 1);
    if (name == "recursive_multiplying")
        return vector_exchange(input, "recursive_multiplying." + std::to_string(input.spec.integer("radix", 4, 2)), n,
                               1, 1);
    if (name == "direct") return 2 * tiers.all_to_all(n / p) + tiers.reduce_s(n * (p - 1) / p);
    const double group = tiers.node().ranks, nodes = tiers.nodes();
    if (name == "node_pieces") return estimate_node_pieces(input, NodePieces::allreduce);
    if (name == "node_aware") {
        // With nodes of different sizes the number of lanes is the size of the smallest one.
        if (any_of(input, {"radix", "inside"}) || !tiers.even()) return std::nullopt;
        return 2 * summed_in_node(input, n) + tiers.between_nodes((nodes - 1) / group, n) +
               tiers.reduce_s(n * (nodes - 1) / group);
    }
    if (name != "leaders") return std::nullopt;
    const std::string_view between = input.spec.find("between").value_or("recursive_doubling");
    const std::string_view inside = input.spec.find("inside").value_or("linear");
    const std::string_view leaders = input.spec.find("leaders").value_or("1");
    if (const auto level = input.spec.find("level")) {
        // As many chunks as the smallest group has ranks; with very uneven groups its few ranks determine the time.
        const std::size_t tier = tiers.named(*level);
        const double members = tiers[tier].ranks, many = tiers[tier].least;
        if (leaders != "all" || inside != "linear" || tiers[tier].name != *level || members >= p ||
            tiers[tier].most > 2 * many)
            return std::nullopt;
        const auto exchange = vector_exchange(input, between, n / many, members, members / many);
        if (!exchange) return std::nullopt;
        return tiers.spread_within(tier, many, n / many, true) + *exchange +
               tiers.spread_within(tier, many, n / many, false);
    }
    if (leaders != "all" && input.spec.integer("leaders", 1) > 1 && inside != "linear") return std::nullopt;
    const double many =
        leaders == "all" ? group : std::min(group, static_cast<double>(input.spec.integer("leaders", 1)));
    if (many <= 1) {
        const auto exchange = vector_exchange(input, between, n, group, group);
        if (!exchange) return std::nullopt;
        return node_s(input, n, inside, true) + *exchange + node_s(input, n, inside, false);
    }
    const auto exchange = vector_exchange(input, between, n / many, group, group / many);
    if (!exchange) return std::nullopt;
    const double chunk = n / many;
    if (many < group) {
        // A leader receives from all other ranks of its node; these send one chunk to each leader.
        const double one = tiers.intra_node().overhead_s + chunk / tiers.intra_node().stream;
        const double ends =
            tiers.intra_node().latency_s + std::max((group - 1 + many - 1) * one, tiers.memory_s((group - 1) * n));
        return 2 * ends + tiers.reduce_s(chunk * (group - 1)) + *exchange;
    }
    return split_in_node(input, inside, n, true) + *exchange + split_in_node(input, inside, n, false);
}

}  // namespace palmette::model
