#include "palmette/collectives/trees/tree_formulas.hpp"

#include <cmath>

namespace palmette::collectives {
namespace {

/// Rounds of a k-nomial tree of a phase, the lightest first: visit(crossed tier, ranks below a child, children of that
/// weight).
template <class Visit>
void each_weight(const FormulaInput& input, const TreePhase& phase, const Visit& visit) {
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
double star_s(const FormulaInput& input, const TreePhase& phase, double bytes) {
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
bool is_star(const TreePhase& phase) {
    return phase.shape.is_star() ||
           (phase.shape.kind == TreeShape::Kind::postal && phase.members - 1 <= phase.shape.radix);
}

/// Steps until a postal tree of `latency` has reached `members` members.
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

/// Time until a phase has forwarded one segment, and the messages that its leader sends.
struct PhaseTime {
    double fill_s = 0, copies = 1;
};

/// Completion of a postal tree. `bytes` in each message; `combined`: a receiver's reduction time for each.
PhaseTime postal_s(const Tiers& tiers, std::size_t tier, double bytes, double members, std::int32_t latency,
                   double combined) {
    const double steps = postal_steps(members, latency), late = latency;
    const double copied = tiers[tier].inside ? tiers.transfer(tier, bytes) : 0;  // second copy, by the other end
    const double gap = std::max(tiers.transfer(tier, bytes), tiers.busy(tier, bytes) + 2 * copied) + combined;
    const double message = tiers.message(tier, bytes) + copied + combined;
    const double hops = std::max(1.0, std::floor(steps / late)), messages = std::max(1.0, steps - late + 1);
    return {std::max((messages - 1) * gap + message, hops * message + std::fmod(steps, late) * gap), messages};
}

/// Ranks of a node that share its leader's messages to other nodes.
double relays_in_node(const FormulaInput& input) {
    const auto given = input.spec.find("relays");
    if (!given) return 1;
    const double most = input.tiers.node().ranks;
    return *given == "all" ? most : std::min(most, static_cast<double>(input.spec.integer("relays", 1)));
}

/// Whether each rank has one outstanding send at a time. The number of buffered short messages is unlimited.
bool one_outstanding_send(const FormulaInput& input, double bytes) {
    return input.tiers.is_unbuffered(bytes) && input.spec.find("window") && input.spec.integer("window", 1) == 1;
}

/// One segment along a k-ary tree or a chain.
PhaseTime ary_s(const FormulaInput& input, const TreePhase& phase, std::size_t tier, double part, double combined) {
    const Tiers& tiers = input.tiers;
    const double radix = phase.shape.radix, copies = std::min(radix, phase.members - 1);
    if (radix != 1) {
        const double hops = std::ceil(std::log(phase.members * (radix - 1) + 1) / std::log(radix)) - 1;
        return {hops * (tiers.message(tier, part) + (copies - 1) * tiers.transfer(tier, part) + combined * copies),
                copies};
    }
    // A chain crosses inner levels between most neighbours, outer levels only between groups.
    double fill_s = 0, within = phase.size;
    const double around = phase.members * phase.size;
    for (std::size_t t = tiers.count(); t-- > 0;) {
        const double reach = std::min(around, t == 0 ? tiers.ranks() : tiers[t - 1].ranks);
        if (reach <= within) continue;
        const double crossings = around / within - around / reach;
        fill_s += crossings * (tiers.message(t, part) + combined);
        within = reach;
    }
    return {fill_s, copies};
}

/// One segment along a k-nomial tree.
PhaseTime nomial_s(const FormulaInput& input, const TreePhase& phase, double part, double combined) {
    const Tiers& tiers = input.tiers;
    PhaseTime out{0, 0};
    each_weight(input, phase, [&](std::size_t crossed, double, double children) {
        out.copies += children;
        if (one_outstanding_send(input, part)) {
            out.fill_s += children * tiers.message(crossed, part);
            return;
        }
        // A leader's sends to all children are concurrent, so that the first child's subtree waits for the last
        // child's bytes.
        const double copied = tiers[crossed].inside && !tiers.is_unbuffered(part) ? 2 : 1;  // by both ends
        out.fill_s += tiers.message(crossed, part) - tiers.transfer(crossed, part) +
                      copied * tiers.transfer(crossed, part) * (input.combines ? children : out.copies) +
                      combined * children + (children - 1) * tiers.busy(crossed, part);
    });
    return out;
}

/// One segment along a phase of any shape.
PhaseTime phase_s(const FormulaInput& input, const TreePhase& phase, std::size_t tier, double part, double combined) {
    const double others = phase.members - 1;
    if (phase.shape.shared && input.shares)
        return {shared_in_node_s(input.tiers, part, input.combines ? 1 : others, input.combines ? others : 0), 0};
    if (is_star(phase)) return {star_s(input, phase, part) + (input.combines ? combined * others : 0), others};
    if (phase.shape.kind == TreeShape::Kind::postal)
        return postal_s(input.tiers, tier, part, phase.members, phase.shape.radix, combined);
    if (phase.shape.kind == TreeShape::Kind::ary) return ary_s(input, phase, tier, part, combined);
    return nomial_s(input, phase, part, combined);
}

}  // namespace

std::vector<TreePhase> flat_phases(const FormulaInput& input, TreeShape shape) {
    return {{input.tiers.ranks(), 1, shape}};
}

std::vector<TreePhase> topology_phases(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    constexpr TreeShape binomial{2};
    std::vector<TreePhase> out;
    bool any_named = false;
    for (std::size_t t = 0; t + 1 < tiers.count(); ++t)
        any_named = any_named || input.spec.find(tiers[t].name).has_value();
    out.reserve(tiers.count());
    double around = tiers.ranks();
    TreeShape shape = binomial;
    if (const auto top = input.spec.find("top")) shape = TreeShape::parse(*top);
    for (std::size_t t = 0; t + 1 < tiers.count(); ++t) {
        const auto own = input.spec.find(tiers[t].name);
        if ((any_named && !own) || tiers[t].ranks >= around) continue;
        out.push_back({std::ceil(around / tiers[t].ranks), tiers[t].ranks, shape});
        around = tiers[t].ranks;
        shape = own ? TreeShape::parse(*own, true) : binomial;
    }
    if (around > 1) out.push_back({around, 1, shape});
    return out;
}

std::optional<double> blocks_along_s(const FormulaInput& input, const std::vector<TreePhase>& phases) {
    const Tiers& tiers = input.tiers;
    const double relays = relays_in_node(input);
    double total = 0;
    for (const TreePhase& whole : phases) {
        TreePhase phase = whole;
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
            fill_s = postal_s(tiers, tier, 0, phase.members, phase.shape.radix, 0).fill_s +
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

double vector_along_s(const FormulaInput& input, const std::vector<TreePhase>& phases) {
    const Tiers& tiers = input.tiers;
    const double relays = relays_in_node(input);
    const double cuts = input.segments(input.bytes);
    const double part = input.bytes / cuts;
    const double combined = input.combines ? tiers.reduce_s(part) : 0;
    double first = 0;    // pipeline fill time: until the first segment has passed all phases
    double slowest = 0;  // time per further segment
    double inner = 0;    // link time of a leader's messages of inner phases
    double shared = 0;   // the same of a segment, where groups combine
    for (auto at = phases.rbegin(); at != phases.rend(); ++at) {
        const TreePhase& whole = *at;
        TreePhase phase = whole;
        const std::size_t tier = tiers.crossed(phase.members * phase.size / 2);
        const bool inside = tiers[tier].inside;
        // Intra-node, both ends copy a message that the MPI buffers.
        const double both = inside && !tiers.is_unbuffered(part) ? 2 : 1;
        // Relays of the root's node take over a share of its messages.
        if (!inside) phase.members = std::ceil((phase.members - 1) / relays) + 1;
        auto [fill_s, copies] = phase_s(input, phase, tier, part, combined);
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
                   : std::max({memory, shared, (copies + 1) * tiers.busy(tier, part) + combined * copies});
        slowest = std::max(slowest, per_segment);
    }
    return first + (cuts - 1) * slowest;
}

std::optional<double> circulant_vector_s(const FormulaInput& input, double segments) {
    const Tiers& tiers = input.tiers;
    if (tiers.node().ranks > 1) return std::nullopt;
    // One segment per rank and round, over cyclically halving distances; most segments arrived some rounds before they
    // are forwarded. Concurrent sends of a rank share its link, so that each round is delayed by those after it, too.
    const double part = input.bytes / segments;
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

double shrinking_s(const Tiers& tiers, double vector) {
    double total = 0;
    for (double below = tiers.ranks() / 2; below >= 0.5; below /= 2)
        total += tiers[tiers.crossed(std::max(1.0, below))].latency_s;
    const double wires = 2 * tiers.from_root(vector / tiers.nodes());
    return total + std::max(wires, tiers.node().ranks > 1 ? tiers.memory_s(vector / tiers.nodes()) : 0);
}

}  // namespace palmette::collectives
