// Formulas of tree algorithms: gather and scatter (Kandalla et al., IPDPS 2010, level by level), bcast and reduce.
#include <algorithm>
#include <cmath>
#include <vector>

#include "palmette/collectives/trees/tree_shape.hpp"
#include "palmette/model/estimate/estimate_families.hpp"

namespace palmette::model {
namespace {

using collectives::TreeShape;

/// One tree inside of all groups of a level: `members` leaders of `size` ranks each.
struct Phase {
    double members, size;
    TreeShape shape;
};

/// The phases of a tree with leaders at the levels that the spec names (all, where it names none), outermost first.
std::vector<Phase> phases_of(const FormulaInput& input, const TreeShape& fallback) {
    const Tiers& tiers = input.tiers;
    std::vector<Phase> out;
    if (input.spec.name != "by_topology") {
        TreeShape shape = fallback;
        if (input.spec.name == "linear") shape = {0};
        if (input.spec.name == "chain") shape = TreeShape::chain();
        if (input.spec.name == "k_nomial") shape = {input.spec.integer("radix", 2, 2)};
        if (input.spec.name == "k_ary") shape = {input.spec.integer("radix", 2, 1), TreeShape::Kind::ary};
        return {{tiers.ranks(), 1, shape}};
    }
    bool any_named = false;
    for (std::size_t t = 0; t + 1 < tiers.count(); ++t)
        any_named = any_named || input.spec.find(tiers[t].name).has_value();
    out.reserve(tiers.count());
    double around = tiers.ranks();
    TreeShape shape = fallback;
    if (const auto top = input.spec.find("top")) shape = TreeShape::parse(*top);
    for (std::size_t t = 0; t + 1 < tiers.count(); ++t) {
        const auto own = input.spec.find(tiers[t].name);
        if ((any_named && !own) || tiers[t].ranks >= around) continue;
        out.push_back({std::ceil(around / tiers[t].ranks), tiers[t].ranks, shape});
        around = tiers[t].ranks;
        shape = own ? TreeShape::parse(*own, true) : fallback;
    }
    if (around > 1) out.push_back({around, 1, shape});
    return out;
}

/// Rounds of a k-nomial tree of a phase, the lightest first: visit(crossed tier, ranks below a child, children of that
/// weight).
template <class Visit>
void each_weight(const FormulaInput& input, const Phase& phase, const Visit& visit) {
    const double radix = phase.shape.radix;
    for (double weight = 1; weight < phase.members; weight *= radix) {
        const double children = std::min(radix - 1, std::ceil(phase.members / weight) - 1);
        const double below = std::min(weight, phase.members - weight) * phase.size;
        // The farthest child determines which links are crossed.
        const double farthest = std::min(std::max(1.0, children) * weight, phase.members - 1);
        visit(input.tiers.crossed(farthest * phase.size), below, children);
    }
}

/// A star (linear fan-in or fan-out): the leader receives `bytes` from each of `members - 1` others, or sends them.
/// Concurrent arrivals share the link and complete together, so that the receiver's work follows the transfer; sends
/// overlap with it.
double star_s(const FormulaInput& input, const Phase& phase, double bytes) {
    const Tiers& tiers = input.tiers;
    const double all = phase.members * phase.size;
    double longest = 0, work = 0, within = phase.size;
    for (std::size_t t = tiers.count(); t-- > 0;) {
        const double around = std::min(all, t == 0 ? tiers.ranks() : tiers[t - 1].ranks);
        if (around <= within) continue;
        const double messages = (around - within) / phase.size;
        within = around;
        work += messages * tiers.busy(t, bytes);
        if (tiers[t].inside) work += messages * bytes / tiers[t].stream;
    }
    for (std::size_t t = 0; t < tiers.count(); ++t)
        if (!tiers[t].inside && tiers[t].edge > 0 && tiers[t].ranks < all)
            longest =
                std::max(longest, (all - std::max(tiers[t].ranks, phase.size)) / phase.size * bytes / tiers[t].edge);
    const std::size_t outermost = tiers.crossed(all / 2);
    return tiers.message(outermost, bytes) - tiers.transfer(outermost, bytes) +
           (input.to_root ? longest + work : std::max({longest, work, tiers.transfer(outermost, bytes)}));
}

/// A postal tree degenerates to a star where its root has sent to all others before the first of them can send.
bool is_star(const Phase& phase) {
    return phase.shape.is_star() ||
           (phase.shape.kind == TreeShape::Kind::postal && phase.members - 1 <= phase.shape.radix);
}

/// Steps until a postal tree of `latency` has reached so many members.
double postal_steps(double members, std::int32_t latency) {
    std::vector<double> reached(static_cast<std::size_t>(latency) + 1, 1);  // the last latency + 1 steps, a ring buffer
    std::size_t at = 0, steps = 0;
    double now = 1;
    while (now < members) {
        ++steps;
        const std::size_t oldest = (at + 1) % reached.size();
        now += steps >= static_cast<std::size_t>(latency) ? reached[oldest] : 0;
        at = oldest;
        reached[at] = now;
    }
    return static_cast<double>(steps);
}

/// Completion time of a postal tree, and the number of messages that its root sends.
struct Postal {
    double seconds = 0, messages = 1;
};

/// `bytes` in each message; `combined`: a receiver's reduction time for each.
Postal postal_s(const Tiers& tiers, std::size_t tier, double bytes, double members, std::int32_t latency,
                double combined) {
    const double steps = postal_steps(members, latency), late = latency;
    const double copied = tiers[tier].inside ? tiers.transfer(tier, bytes) : 0;  // second copy, by the other end
    const double gap = std::max(tiers.transfer(tier, bytes), tiers.busy(tier, bytes) + 2 * copied) + combined;
    const double message = tiers.message(tier, bytes) + copied + combined;
    const double hops = std::max(1.0, std::floor(steps / late)), messages = std::max(1.0, steps - late + 1);
    return {std::max((messages - 1) * gap + message, hops * message + std::fmod(steps, late) * gap), messages};
}

/// Ranks of a node that share its leader's messages to other nodes.
double relays_of(const FormulaInput& input) {
    const auto given = input.spec.find("relays");
    if (!given) return 1;
    const double most = input.tiers.node().ranks;
    return *given == "all" ? most : std::min(most, static_cast<double>(input.spec.integer("relays", 1)));
}

}  // namespace

double FormulaInput::segments(double length) const {
    const auto segment = static_cast<double>(spec.size("segment", 0));
    if (segment <= 0 || length <= segment) return 1;
    return std::min(64.0, std::ceil(length / segment));
}

std::optional<double> estimate_rooted_blocks(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    const double relays = relays_of(input);
    double total = 0;
    for (const Phase& whole : phases_of(input, {2})) {
        Phase phase = whole;
        const double bytes = input.bytes * phase.size;
        const std::size_t tier = tiers.crossed(phase.members * phase.size / 2);
        const bool inside = tiers[tier].inside;
        // Relays of the root's node take over a share of its messages, over the same link.
        if (!inside) phase.members = std::ceil((phase.members - 1) / relays) + 1;
        double fill_s = 0;
        if (phase.shape.is_star()) {
            fill_s = star_s(input, phase, bytes);
        } else if (phase.shape.kind == TreeShape::Kind::postal) {
            // Ranks next to the root forward the most: the blocks of all others are serialised there.
            const double both = inside ? 2 : 1;
            fill_s = postal_s(tiers, tier, 0, phase.members, phase.shape.radix, 0).seconds +
                     (phase.members - 1) * both * tiers.transfer(tier, bytes);
        } else if (phase.shape.kind == TreeShape::Kind::nomial) {
            each_weight(input, phase, [&](std::size_t crossed, double below, double children) {
                const double sent = input.bytes * below;
                fill_s += tiers.message(crossed, sent) + (tiers[crossed].inside ? tiers.transfer(crossed, sent) : 0) +
                          (children - 1) * (tiers.transfer(crossed, sent) + tiers[crossed].overhead_s);
            });
        } else {
            return std::nullopt;
        }
        if (relays > 1 && !inside)
            fill_s = std::max(fill_s, tiers[tier].latency_s + tiers.from_root(input.bytes * tiers.node().ranks));
        total += fill_s;
        // Between the root and its relays.
        if (relays > 1 && !inside && tiers.node().ranks > 1) {
            const Tier& side = tiers.intra_node();
            const double moved = whole.members * bytes, copied = side.stream > 0 ? moved / side.stream : 0;
            total += side.latency_s + (relays - 1) * side.overhead_s + std::max(2 * copied, tiers.memory_s(moved));
        }
    }
    return total;
}

namespace {

/// Binomial scatter or gather of a vector: messages halve from level to level. `times`: how often its bytes are
/// serialised on links.
double shrinking_s(const Tiers& tiers, double vector, double times) {
    double total = 0;
    for (double below = tiers.ranks() / 2; below >= 0.5; below /= 2)
        total += tiers[tiers.crossed(std::max(1.0, below))].latency_s;
    const double wires = times * tiers.from_root(vector / tiers.nodes());
    return total + std::max(wires, tiers.node().ranks > 1 ? tiers.memory_s(vector / tiers.nodes()) : 0);
}

/// Whether each rank has one outstanding send at a time. The number of buffered short messages is unlimited.
bool one_outstanding_send(const FormulaInput& input, double bytes) {
    return input.tiers.is_unbuffered(bytes) && input.spec.find("window") && input.spec.integer("window", 1) == 1;
}

/// The defaults of bcast_circulant.cpp and reduce_circulant.cpp.
double circulant_segments(double vector, bool combines) {
    if (combines) return std::max(1.0, std::ceil(vector / std::clamp<double>(vector / 16, 8 << 10, 64 << 10)));
    if (vector < 32 << 10) return 1;
    return std::max(16.0, std::ceil(vector / (64 << 10)));
}

}  // namespace

std::optional<double> estimate_rooted_vector(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    const double vector = input.bytes;
    if (input.spec.name == "node_pieces")
        return estimate_node_pieces(input, input.combines ? NodePieces::reduce : NodePieces::bcast);
    if (input.spec.name == "ring_gather" || input.spec.name == "bine" || input.spec.name == "earliest" ||
        input.spec.name == "leaders")
        return std::nullopt;
    if (input.spec.name == "circulant") {
        if (tiers.node().ranks > 1) return std::nullopt;
        // One segment per rank and round, over cyclically halving distances; most segments arrived some rounds before
        // they are forwarded. Concurrent sends of a rank share its link, so that each round is delayed by those after
        // it, too.
        const double segments = input.spec.find("segments")  ? input.spec.integer("segments", 1)
                                : input.spec.find("segment") ? input.segments(vector)
                                                             : circulant_segments(vector, input.combines);
        const double part = vector / segments;
        const double combining = input.combines ? tiers.reduce_s(part) : 0;
        double first = 0, together = 0, links = 0, rounds = 0;
        for (double d = tiers.ranks() / 2; d >= 0.5; d /= 2) {
            const double span = std::max(1.0, std::floor(d));
            const double round = tiers.round(span, part, Partners::shift);
            links += round - tiers[tiers.crossed(span)].latency_s;
            rounds += 1;
            first += combining + round + together * tiers.transfer(tiers.crossed(span), part);
            if (tiers.is_unbuffered(part) && !one_outstanding_send(input, part)) together += 1;
        }
        const double gap = one_outstanding_send(input, part)
                               ? std::max(tiers.message(0, part), combining)
                               : std::max(links / rounds, 2 * tiers.busy(0, part) + combining);
        return first + (segments - 1) * gap;
    }
    if (input.spec.name == "scatter_allgather") {
        const auto all =
            estimate_block_exchange(input, input.spec.find("allgather").value_or("ring"), vector / tiers.ranks(), 1);
        // Ranks of a node share its link, but their rounds aren't synchronised: 50 % longer, as measured in
        // simulations.
        const double shared = tiers.node().ranks > 1 ? 1.5 : 1;
        return all ? std::optional(shared * *all + shrinking_s(tiers, vector, 2)) : std::nullopt;
    }
    if (input.spec.name == "reduce_scatter_gather") {
        double part = vector, total = shrinking_s(tiers, vector, 2);
        double whole = 1;  // ranks beyond the largest power of two are folded in first
        while (whole * 2 <= tiers.ranks()) whole *= 2;
        if (whole < tiers.ranks()) total += tiers.message(tiers.crossed(1), vector) + tiers.reduce_s(vector);
        for (double d = 1; d < whole; d *= 2) {
            part /= 2;
            total += tiers.round(d, part, Partners::flip) + tiers.reduce_s(part);
        }
        return total;
    }
    const double relays = relays_of(input);
    const double cuts = input.segments(vector);
    const double part = vector / cuts;
    const double combined = input.combines ? tiers.reduce_s(part) : 0;
    double first = 0;    // pipeline fill time: until the first segment has passed all phases
    double slowest = 0;  // time per further segment
    double inner = 0;    // link time of a leader's messages of inner phases
    double shared = 0;   // the same of a segment, where groups combine
    const std::vector<Phase> phases = phases_of(input, {2});
    for (auto at = phases.rbegin(); at != phases.rend(); ++at) {
        const Phase& whole = *at;
        Phase phase = whole;
        const std::size_t tier = tiers.crossed(phase.members * phase.size / 2);
        const bool inside = tiers[tier].inside;
        // Intra-node, both ends copy a message that the MPI buffers.
        const double both = inside && !tiers.is_unbuffered(part) ? 2 : 1;
        // Relays of the root's node take over a share of its messages.
        if (!inside) phase.members = std::ceil((phase.members - 1) / relays) + 1;
        double hops = 0, copies = 0, fill_s = 0;
        if (phase.shape.shared && input.shares) {
            const double others = phase.members - 1;
            hops = 1, copies = 0;
            fill_s = shared_in_node(tiers, part, input.combines ? 1 : others, input.combines ? others : 0);
        } else if (is_star(phase)) {
            hops = 1, copies = phase.members - 1;
            fill_s = star_s(input, phase, part) + (input.combines ? combined * copies : 0);
        } else if (phase.shape.kind == TreeShape::Kind::postal) {
            const Postal tree = postal_s(tiers, tier, part, phase.members, phase.shape.radix, combined);
            hops = 1, copies = tree.messages, fill_s = tree.seconds;
        } else if (phase.shape.kind == TreeShape::Kind::ary) {
            const double radix = phase.shape.radix;
            hops = radix == 1 ? phase.members - 1
                              : std::ceil(std::log(phase.members * (radix - 1) + 1) / std::log(radix)) - 1;
            copies = std::min(radix, phase.members - 1);
            // A chain crosses inner levels between most neighbours, outer levels only between groups.
            double within = phase.size;
            double around = phase.members * phase.size;
            if (radix == 1) {
                for (std::size_t t = tiers.count(); t-- > 0;) {
                    const double reach = std::min(around, t == 0 ? tiers.ranks() : tiers[t - 1].ranks);
                    if (reach <= within) continue;
                    const double crossings = around / within - around / reach;
                    fill_s += crossings * (tiers.message(t, part) + combined);
                    within = reach;
                }
            } else {
                fill_s =
                    hops * (tiers.message(tier, part) + (copies - 1) * tiers.transfer(tier, part) + combined * copies);
            }
        } else {
            each_weight(input, phase, [&](std::size_t crossed, double, double children) {
                hops += 1, copies += children;
                if (one_outstanding_send(input, part)) {
                    fill_s += children * tiers.message(crossed, part);
                    return;
                }
                // A leader's sends to all children are concurrent, so that the first child's subtree waits for the last
                // child's bytes.
                const double copied = tiers[crossed].inside && !tiers.is_unbuffered(part) ? 2 : 1;  // by both ends
                fill_s += tiers.message(crossed, part) - tiers.transfer(crossed, part) +
                          copied * tiers.transfer(crossed, part) * (input.combines ? children : copies) +
                          combined * children + (children - 1) * tiers.busy(crossed, part);
            });
        }
        if (!inside && relays > 1) {  // relays share the links
            const double own = tiers.node().edge > 0 ? copies * relays * part / tiers.node().edge : 0;
            fill_s = std::max(fill_s, tiers[tier].latency_s + (is_star(phase) ? tiers.from_root(part) : own));
        }
        // A leader's messages to other groups contend for its link with its concurrent messages inside of its group.
        if (!inside && !input.combines && !one_outstanding_send(input, part)) {
            fill_s += inner;
            inner += copies * relays * tiers.transfer(tier, part);
        }
        // Intra-node messages of all groups of this phase in the node.
        const double own = tiers.node().ranks, around = phase.members * phase.size;
        const double local_messages = inside ? std::max(1.0, own / around) * (whole.members - 1)
                                             : (is_star(phase) ? 0 : std::max(0.0, own / phase.size - 1));
        const double memory = tiers.memory_s(part * local_messages);
        fill_s = input.combines && is_star(phase) ? fill_s + memory : std::max(fill_s, memory);
        first += fill_s;
        if (inside && relays > 1) first += fill_s;  // once to the relays of the root's node, once on the other nodes
        // What a leader gets from its group and from other groups comes over one link.
        const double links = copies * tiers.transfer(tier, part);
        if (!inside) shared = input.combines ? shared + links : links;
        const double per_segment =
            inside ? std::max(both * copies * (tiers.transfer(tier, part) + tiers[tier].overhead_s) + combined * copies,
                              memory)
                   : std::max({memory, shared,
                               (copies + 1) * tiers.busy(tier, part) + combined * copies});
        slowest = std::max(slowest, per_segment);
    }
    return first + (cuts - 1) * slowest;
}

}  // namespace palmette::model
