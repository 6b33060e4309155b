// Formulas of exchanges among all ranks (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005), with links that ranks of a
// group share.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>

#include "palmette/base/error.hpp"
#include "palmette/collectives/trees/tree_shape.hpp"
#include "palmette/model/estimate/estimate_families.hpp"

namespace palmette::model {
namespace {

bool any_of(const Asked& asked, std::initializer_list<std::string_view> keys) {
    return std::any_of(keys.begin(), keys.end(),
                       [&](std::string_view key) { return asked.spec.find(key).has_value(); });
}

/// The number behind a pattern's name, 2 or more. Throws base::Error naming the specification.
double radix_of(const Asked& asked, std::string_view text) {
    int radix = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, radix);
    if (error != std::errc() || stop != end || radix < 2)
        base::fail("algorithm '", asked.spec.text(), "': '", text, "' is no number from 2 on");
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

/// A ring that closes inside of each group, so that a group's edge carries every block but the group's own, once.
/// `cuts`: segments of a block.
double nested_ring_s(const Tiers& tiers, double bytes, double cuts) {
    double links = 0, around = 1, closing = 0;
    double step = tiers.nodes() > 1 ? tiers.transfer(tiers.named("node"), bytes) : 0;
    for (std::size_t t = 0; t < tiers.count(); ++t) {
        const bool last = t + 1 == tiers.count();
        const double groups = last ? tiers.ranks() : tiers[t].groups;
        if (groups <= around) continue;
        const double hop = tiers.transfer(t, bytes) * (tiers[t].inside ? 2 : 1);
        // Who ends a group that is larger than the next one gives more blocks back than it doesn't pass on.
        links = std::max(links, (tiers.ranks() - (last ? 1 : tiers[t].least) + closing) * hop);
        if (tiers[t].inside) step = std::max(step, hop);
        if (!last) closing += tiers[t].most - tiers[t].least;
        around = groups;
    }
    const double others = tiers.ranks() - 1, latency = ring_latency_s(tiers, 1);
    // A block goes on when it has come, a segment while others still come.
    return std::max(
               {links, others * (latency + step / cuts), tiers.memory_s((tiers.node().ranks - 1) * others * bytes)}) +
           (cuts > 1 ? latency : 0);
}

/// What the leader of a node spends on taking from, or giving to, the others of it.
double node_s(const Asked& asked, double bytes, std::string_view inside, bool combine) {
    const double members = asked.tiers.node().ranks;
    if (members <= 1) return 0;
    const Tier& tier = asked.tiers.side_by_side();
    const double one = bytes / tier.stream + tier.overhead_s + (combine ? asked.tiers.reduce_s(bytes) : 0);
    if (inside == "shared" && asked.shares)
        return 2 * tier.latency_s + asked.tiers.copy_s(bytes) + (combine ? asked.tiers.reduce_s(bytes) : 0);
    if (inside == "linear" || inside == "shared")
        return tier.latency_s + std::max((members - 1) * one, asked.tiers.memory_s((members - 1) * bytes));
    return std::max(std::ceil(std::log2(members)) * (tier.latency_s + one),
                    asked.tiers.memory_s((members - 1) * bytes));
}

}  // namespace

std::optional<double> estimate_block_exchange(const Asked& asked, std::string_view pattern, double bytes, double each) {
    const Tiers& tiers = asked.tiers;
    const double parts = std::ceil(tiers.ranks() / each);
    if (pattern == "ring") {
        const double cuts = asked.segments(bytes);
        const bool closes = asked.spec.name == "ring" || asked.spec.name == "scatter_allgather";
        const std::string_view nested = asked.spec.find("nested").value_or("auto");
        const bool may_close = closes && tiers.in_topology_order() && nested != "no";
        if (may_close && nested == "yes") return nested_ring_s(tiers, bytes, cuts);
        const double hop = ring_hop_s(tiers, bytes, each);
        const double latency = ring_latency_s(tiers, each);
        // Segments of a block follow each other, so that only one of them waits for the latency.
        const double plain =
            std::max((parts - 1) * hop, (parts - 1) * (latency + hop / cuts)) + (cuts > 1 ? latency : 0);
        return may_close ? std::min(plain, nested_ring_s(tiers, bytes, cuts)) : plain;
    }
    double total = 0;
    if (pattern == "recursive_doubling") {
        for (double d = 1; d < parts; d *= 2) total += tiers.round(d * each, d * bytes, Partners::flip, each);
        return total;
    }
    if (pattern.starts_with("bruck")) {
        const double radix = pattern.size() > 6 ? radix_of(asked, pattern.substr(6)) : 2;
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
    const double group = tiers.node().ranks, nodes = tiers.nodes();
    if (name == "locality_bruck" && !asked.combines) {
        // With nodes of different sizes it takes the smallest one's radix.
        if (any_of(asked, {"level", "radix", "inside"}) || nodes <= 1 || !tiers.even()) return std::nullopt;
        // In each round every rank of a node brings another node's blocks, which all of it then have.
        double total = tiers.within_node(group - 1, m), have = 1;
        while (have < nodes) {
            const double more = std::min(have * std::max(1.0, group - 1), nodes - have);
            total += tiers.between_nodes(1, m * group * std::min(have, more)) +
                     tiers.within_node(group - 1, m * group * more / std::max(1.0, group - 1));
            have += more;
        }
        return total;
    }
    if (name != "leaders" || any_of(asked, {"level", "layout"})) return std::nullopt;
    const std::string_view inside = asked.spec.find("inside").value_or("linear");
    const double many = std::min(group, static_cast<double>(asked.spec.integer("leaders", 1)));
    if (many > 1 && asked.combines) return std::nullopt;
    if (many > 1) {
        // Each leader has the blocks of its share of the members, takes those of its like elsewhere, and hands on all
        // that comes.
        const double own = group / many;
        const std::string_view between = asked.spec.find("between").value_or("ring");
        // All leaders of a node at once, over the same links.
        const auto exchange =
            nodes > 1 ? estimate_block_exchange(asked, between, m * group, group) : std::optional<double>(0.0);
        if (!exchange) return std::nullopt;
        const double links = *exchange;
        const Tier& side = tiers.side_by_side();
        const bool at_once = between == "ring";
        const double arrivals = at_once ? nodes - 1 : std::ceil(std::log2(std::max(2.0, nodes)));
        // A rank takes all blocks, and passes on its share of them: a leader to everybody, or each to a few.
        const double passed = inside == "linear" ? (group - 1) / many : 1.5;
        const double depth = inside == "linear" ? group - 1 : std::ceil(std::log2(group));
        const double work = depth * arrivals * side.overhead_s + (1 + passed) * m * p / side.stream;
        const double handed_out = std::max(work, tiers.memory_s((group - 1) * m * p));
        return 2 * side.latency_s + (own - 1) * side.overhead_s +
               (at_once ? std::max(links, handed_out) + handed_out / nodes : links + handed_out);
    }
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

namespace {

/// Ranks that stand `stride` apart combine vectors of `n` bytes; one of each `each` ranks of the job takes part at the
/// same time.
std::optional<double> vector_exchange(const Asked& asked, std::string_view pattern, double n, double stride,
                                      double each) {
    const Tiers& tiers = asked.tiers;
    const double p = tiers.ranks(), parts = std::ceil(p / stride);
    if (parts <= 1) return 0.0;
    double radix = 0;
    if (pattern == "recursive_doubling" || pattern == "rabenseifner") radix = 2;
    if (pattern == "recursive_multiplying") radix = 4;
    if (pattern.starts_with("recursive_multiplying.")) radix = radix_of(asked, pattern.substr(pattern.find('.') + 1));
    if (pattern == "ring") {
        const auto half = estimate_block_exchange(asked, "ring", n / parts, stride);
        return half ? std::optional(2 * *half + tiers.reduce_s(n * (parts - 1) / parts)) : std::nullopt;
    }
    if (pattern == "all") {
        if (stride == 1) return tiers.everybody(n) + tiers.reduce_s(n * (parts - 1));
        return tiers.between_nodes((parts - 1) / each, n) + tiers.reduce_s(n * (parts - 1));
    }
    if (radix == 0) return std::nullopt;
    double whole = 1;  // those beyond a power give to one of them first, and get the result from it
    while (whole * radix <= parts) whole *= radix;
    double total = 0;
    if (whole < parts && radix == 2) {
        const std::size_t tier = tiers.crossed(stride);
        total += 2 * tiers.message(tier, n) + tiers.reduce_s(n);
    }
    const double all = radix == 2 ? whole : parts;
    double part = n;
    for (double d = 1; d < all; d *= radix) {
        const double partners = std::min(radix, std::ceil(all / d)) - 1;
        // While a rank sends to one partner, what others sent comes in.
        const double more = (partners - 1) * tiers[tiers.crossed(d * stride)].overhead_s;
        if (pattern == "rabenseifner") {
            part /= 2;
            total += 2 * tiers.round(d * stride, part, Partners::flip, each) + tiers.reduce_s(part);
        } else {
            // The farthest of the partners decides which links they cross.
            const double distance = std::max(1.0, (partners + 1) / 2) * d * stride;
            total += tiers.round(distance, n * partners, Partners::flip, each) + more + tiers.reduce_s(n * partners);
        }
    }
    return total;
}

/// The ranks of a node halve a vector among themselves, or put it together again: each has a share at one of the ends.
/// `pieces`: shares are made of nodes' pieces.
double shared_out(const Asked& asked, std::string_view inside, double n, bool combine, bool pieces = false) {
    const Tiers& tiers = asked.tiers;
    const double group = tiers.node().ranks;
    if (group <= 1) return 0;
    const double parts = std::min(group, tiers.nodes());  // no more than there are pieces, where these are nodes'
    if (pieces && parts < group) {
        // Few ranks hold a part, which they take from all others of the node, or give to them.
        const Tier& side = tiers.side_by_side();
        const double one = side.overhead_s + n / parts / side.stream + (combine ? tiers.reduce_s(n / parts) : 0);
        return side.latency_s + std::max((group - 1) * one, tiers.memory_s((group - 1) * n));
    }
    const double share = n * (group - 1) / group;
    const double combined = combine ? tiers.reduce_s(share) : 0;
    if (inside == "shared" && asked.shares) return 2 * tiers.side_by_side().latency_s + tiers.copy_s(n) + combined;
    if (inside == "direct" || inside == "linear" || inside == "shared")
        return tiers.within_node(group - 1, n / group) + combined;
    double radix = 2;
    if (inside.starts_with("halving.")) radix = radix_of(asked, inside.substr(8));
    double total = combined, part = n;
    for (double members = 1; members < group; members *= radix) {
        const double peers = std::min(radix, std::ceil(group / members));
        part /= peers;
        total += tiers.within_node(peers - 1, part);
    }
    return total;
}

/// All ranks of a node get the sum of what they have, or the whole of it.
double summed_in_node(const Asked& asked, double n) {
    const Tiers& tiers = asked.tiers;
    double total = 0;
    for (double members = 1; members < tiers.node().ranks; members *= 4) {
        const double peers = std::min(4.0, std::ceil(tiers.node().ranks / members)) - 1;
        total += tiers.within_node(peers, n) + tiers.reduce_s(n * peers);
    }
    return total;
}

}  // namespace

std::optional<double> estimate_node_pieces(const Asked& asked, NodePieces what) {
    const Tiers& tiers = asked.tiers;
    const double nodes = tiers.nodes(), group = tiers.node().ranks;
    if (nodes <= 1) return std::nullopt;
    const double cuts = asked.segments(asked.bytes);
    const double n = asked.bytes / cuts, piece = n / nodes;
    const std::string_view inside = asked.spec.find("inside").value_or("direct");
    const double messages = (nodes - 1) / std::min(group, nodes);
    // The root's node alone sends or takes all pieces.
    const auto rooted = [&](double each) {
        // A broadcast's messages bring the root's own piece as well.
        const double wires = tiers.from_root(what == NodePieces::bcast ? 2 * piece : piece);
        return tiers[0].latency_s + std::max(wires, (std::ceil(each) - 1) * tiers.busy(0, piece));
    };
    // A node of few ranks has as many messages as the others, for fewer ranks to send.
    const double busiest = (std::ceil((nodes - 1) / std::min(tiers.fewest(), nodes)) - 1) * 2 * tiers.busy(0, piece);
    const double exchanged = std::max(tiers.between_nodes(messages, piece), tiers[0].latency_s + busiest);
    double memory = 0, links = 0;
    if (what == NodePieces::bcast) {
        const bool alone = asked.spec.find("relays").value_or("all") == "1";
        // The root's node sends a piece to each other one, and has all of it to send.
        const double first = rooted(alone ? nodes - 1 : messages);
        if (!alone && group > 1)
            memory +=
                tiers.side_by_side().latency_s + tiers.memory_s(n) + (group - 1) * tiers.side_by_side().overhead_s;
        memory += group > 1 ? tiers.within_node(1, piece) + (group - 1) * tiers.side_by_side().overhead_s : 0;
        memory += shared_out(asked, inside, n, false, true);
        links = first + exchanged;
    } else {
        memory = shared_out(asked, inside, n, true, true);
        links = exchanged + tiers.reduce_s(n / std::min(group, nodes));
        if (what == NodePieces::allreduce) {
            if (group > 1) memory += summed_in_node(asked, piece);
            memory += shared_out(asked, inside, n, false, true);
            links += exchanged;
        } else {
            const double heard = std::min(group, nodes - 1) - 1;  // other ranks of the node to which some came
            if (heard > 0)
                memory += tiers.side_by_side().latency_s +
                          heard * (tiers.side_by_side().overhead_s + piece / tiers.side_by_side().stream) +
                          tiers.memory_s(heard * piece);
            links += rooted(messages);
            if (group > 1)
                memory +=
                    tiers.side_by_side().latency_s + tiers.memory_s(n) + (group - 1) * tiers.side_by_side().overhead_s;
        }
    }
    // Slices follow each other: the memory works on one while the links carry another.
    return memory + links + (cuts - 1) * std::max(memory, links);
}

std::optional<double> estimate_allreduce(const Asked& asked) {
    const Tiers& tiers = asked.tiers;
    const double n = asked.bytes, p = tiers.ranks();
    const std::string_view name = asked.spec.name;
    if (name != "ring" && name != "node_pieces" && asked.spec.find("segment")) return std::nullopt;
    if (name == "recursive_doubling" || name == "all" || name == "rabenseifner" || name == "ring")
        return vector_exchange(asked, name, n, 1, 1);
    if (name == "recursive_multiplying")
        return vector_exchange(asked, "recursive_multiplying." + std::to_string(asked.spec.integer("radix", 4, 2)), n,
                               1, 1);
    if (name == "direct") return 2 * tiers.everybody(n / p) + tiers.reduce_s(n * (p - 1) / p);
    const double group = tiers.node().ranks, nodes = tiers.nodes();
    if (name == "node_pieces") return estimate_node_pieces(asked, NodePieces::allreduce);
    if (name == "node_aware") {
        // With nodes of different sizes it has as many lanes as the smallest one.
        if (any_of(asked, {"radix", "inside"}) || !tiers.even()) return std::nullopt;
        return 2 * summed_in_node(asked, n) + tiers.between_nodes((nodes - 1) / group, n) +
               tiers.reduce_s(n * (nodes - 1) / group);
    }
    if (name != "leaders" || asked.spec.find("level")) return std::nullopt;
    const std::string_view between = asked.spec.find("between").value_or("recursive_doubling");
    const std::string_view inside = asked.spec.find("inside").value_or("linear");
    const std::string_view leaders = asked.spec.find("leaders").value_or("1");
    if (leaders != "all" && asked.spec.integer("leaders", 1) > 1 && inside != "linear") return std::nullopt;
    const double many =
        leaders == "all" ? group : std::min(group, static_cast<double>(asked.spec.integer("leaders", 1)));
    if (many <= 1) {
        const auto exchange = vector_exchange(asked, between, n, group, group);
        if (!exchange) return std::nullopt;
        return node_s(asked, n, inside, true) + *exchange + node_s(asked, n, inside, false);
    }
    const auto exchange = vector_exchange(asked, between, n / many, group, group / many);
    if (!exchange) return std::nullopt;
    const double chunk = n / many;
    if (many < group) {
        // A leader takes from all others of its node; they send it and the other leaders a chunk each.
        const double one = tiers.side_by_side().overhead_s + chunk / tiers.side_by_side().stream;
        const double ends =
            tiers.side_by_side().latency_s + std::max((group - 1 + many - 1) * one, tiers.memory_s((group - 1) * n));
        return 2 * ends + tiers.reduce_s(chunk * (group - 1)) + *exchange;
    }
    return shared_out(asked, inside, n, true) + *exchange + shared_out(asked, inside, n, false);
}

std::optional<double> estimate_alltoall(const Asked& asked) {
    const Tiers& tiers = asked.tiers;
    const double b = asked.bytes, p = tiers.ranks();
    const std::string_view name = asked.spec.name;
    if (name == "linear" || name == "pairwise") return tiers.everybody(b);
    if (name == "bruck") {
        const double radix = asked.spec.integer("radix", 2, 2);
        double total = 0;
        for (double d = 1; d < p; d *= radix) {
            // What goes to the other digits of this place travels at once.
            const double digits = std::min(radix, std::ceil(p / d)) - 1;
            const double moved = b * p * digits / (digits + 1);
            total += tiers.round(std::min(d * (digits + 1) / 2, p / 2), moved, Partners::shift) +
                     2 * tiers.copy_s(moved) + (digits - 1) * 2 * tiers[tiers.crossed(d)].overhead_s;
        }
        return total;
    }
    if (name == "leaders" && !any_of(asked, {"level", "segment", "split", "rounds", "inside"})) {
        const double group = tiers.node().ranks, nodes = tiers.nodes();
        if (nodes <= 1) return std::nullopt;
        const double many = std::min(group, static_cast<double>(asked.spec.integer("leaders", 1)));
        const Tier& side = tiers.side_by_side();
        const double share = b * group * nodes / many;  // what a member gives to one leader, or gets from it
        const double ends = group > 1 ? side.latency_s + std::max((group - 1) * (side.overhead_s + share / side.stream),
                                                                  tiers.memory_s(group * b * group * nodes))
                                      : 0;
        const double more = group > 1 ? (many - 1) * 2 * side.overhead_s : 0;
        double between = tiers.between_nodes((nodes - 1) / group, b * group * group);
        between += (std::ceil((nodes - 1) / many) - std::ceil((nodes - 1) / group)) * 2 * tiers[0].overhead_s;
        return 2 * (ends + more) + between + 2 * tiers.copy_s(b * p * group / many);
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
        group > 1 ? side.latency_s + std::max(2 * (group - 1) * (nodes * b / side.stream + side.overhead_s),
                                              tiers.memory_s(group * (group - 1) * nodes * b))
                  : 0;
    const double packed = 2 * tiers.copy_s(b * p);
    return (nodes > 1 ? tiers[0].latency_s : 0) + std::max(links, work) + handed_on + packed;
}

std::optional<double> estimate_barrier(const Asked& asked) {
    const Tiers& tiers = asked.tiers;
    double total = 0;
    if (asked.spec.name == "dissemination" && !asked.spec.find("inside")) {
        const double radix = asked.spec.integer("radix", 2, 2);
        // Everybody waits for whom the shift takes farthest: over a group's end also where most partners are inside of
        // it.
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
