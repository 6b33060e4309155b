// Formulas of trees: gather and scatter (Kandalla et al., IPDPS 2010, level by level), bcast and reduce.
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
std::vector<Phase> phases_of(const Asked& asked, const TreeShape& fallback) {
    const Tiers& tiers = asked.tiers;
    std::vector<Phase> out;
    if (asked.spec.name != "by_topology") {
        TreeShape shape = fallback;
        if (asked.spec.name == "linear") shape = {0};
        if (asked.spec.name == "chain") shape = TreeShape::chain();
        if (asked.spec.name == "k_nomial") shape = {asked.spec.integer("radix", 2, 2)};
        if (asked.spec.name == "k_ary") shape = {asked.spec.integer("radix", 2, 1), TreeShape::Kind::ary};
        return {{tiers.ranks(), 1, shape}};
    }
    bool any_named = false;
    for (std::size_t t = 0; t + 1 < tiers.count(); ++t)
        any_named = any_named || asked.spec.find(tiers[t].name).has_value();
    out.reserve(tiers.count());
    double around = tiers.ranks();
    TreeShape shape = fallback;
    if (const auto top = asked.spec.find("top")) shape = TreeShape::parse(*top);
    for (std::size_t t = 0; t + 1 < tiers.count(); ++t) {
        const auto own = asked.spec.find(tiers[t].name);
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
void each_weight(const Asked& asked, const Phase& phase, const Visit& visit) {
    const double radix = phase.shape.radix;
    for (double weight = 1; weight < phase.members; weight *= radix) {
        const double children = std::min(radix - 1, std::ceil(phase.members / weight) - 1);
        const double below = std::min(weight, phase.members - weight) * phase.size;
        // The farthest child decides which links they cross.
        const double farthest = std::min(std::max(1.0, children) * weight, phase.members - 1);
        visit(asked.tiers.crossed(farthest * phase.size), below, children);
    }
}

/// A star: the leader takes from `members - 1` others, or gives to them, `bytes` each. What comes in over a link comes
/// all together, and then its receiver has work with it; what is given away sets off as soon as it is ready.
double star_s(const Asked& asked, const Phase& phase, double bytes) {
    const Tiers& tiers = asked.tiers;
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
           (asked.to_root ? longest + work : std::max({longest, work, tiers.transfer(outermost, bytes)}));
}

/// A postal tree is a star where its root has told all others before the first one can tell somebody.
bool is_star(const Phase& phase) {
    return phase.shape.is_star() ||
           (phase.shape.kind == TreeShape::Kind::postal && phase.members - 1 <= phase.shape.radix);
}

/// Steps until a postal tree of `latency` has reached so many members.
double postal_steps(double members, std::int32_t latency) {
    std::vector<double> reached(static_cast<std::size_t>(latency) + 1, 1);  // the last ones, in turn
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

/// When a postal tree's last member has its message, and how many messages its root sends.
struct Postal {
    double seconds = 0, messages = 1;
};

/// `bytes` in each message; `combined`: seconds that a receiver works on each.
Postal postal_s(const Tiers& tiers, std::size_t tier, double bytes, double members, std::int32_t latency,
                double combined) {
    const double steps = postal_steps(members, latency), late = latency;
    const double copied = tiers[tier].inside ? tiers.transfer(tier, bytes) : 0;  // once more, by the other end
    const double gap = std::max(tiers.transfer(tier, bytes), tiers.busy(tier, bytes) + 2 * copied) + combined;
    const double message = tiers.message(tier, bytes) + copied + combined;
    const double hops = std::max(1.0, std::floor(steps / late)), messages = std::max(1.0, steps - late + 1);
    return {std::max((messages - 1) * gap + message, hops * message + std::fmod(steps, late) * gap), messages};
}

/// Ranks of a node that share its leader's messages to other nodes.
double relays_of(const Asked& asked) {
    const auto given = asked.spec.find("relays");
    if (!given) return 1;
    const double most = asked.tiers.node().ranks;
    return *given == "all" ? most : std::min(most, static_cast<double>(asked.spec.integer("relays", 1)));
}

}  // namespace

double Asked::segments(double length) const {
    const auto segment = static_cast<double>(spec.size("segment", 0));
    if (segment <= 0 || length <= segment) return 1;
    return std::min(64.0, std::ceil(length / segment));
}

std::optional<double> estimate_rooted_blocks(const Asked& asked) {
    const Tiers& tiers = asked.tiers;
    const double relays = relays_of(asked);
    double total = 0;
    for (const Phase& whole : phases_of(asked, {2})) {
        Phase phase = whole;
        const double bytes = asked.bytes * phase.size;
        const std::size_t tier = tiers.crossed(phase.members * phase.size / 2);
        const bool inside = tiers[tier].inside;
        // Other ranks of the root's node take a share of its messages, over the same link.
        if (!inside) phase.members = std::ceil((phase.members - 1) / relays) + 1;
        double filled = 0;
        if (phase.shape.is_star()) {
            filled = star_s(asked, phase, bytes);
        } else if (phase.shape.kind == TreeShape::Kind::postal) {
            // Who is near the root has most to pass on: the bytes of all others come one after the other.
            const double both = inside ? 2 : 1;
            filled = postal_s(tiers, tier, 0, phase.members, phase.shape.radix, 0).seconds +
                     (phase.members - 1) * both * tiers.transfer(tier, bytes);
        } else if (phase.shape.kind == TreeShape::Kind::nomial) {
            each_weight(asked, phase, [&](std::size_t crossed, double below, double children) {
                const double sent = asked.bytes * below;
                filled += tiers.message(crossed, sent) + (tiers[crossed].inside ? tiers.transfer(crossed, sent) : 0) +
                          (children - 1) * (tiers.transfer(crossed, sent) + tiers[crossed].overhead_s);
            });
        } else {
            return std::nullopt;
        }
        if (relays > 1 && !inside)
            filled = std::max(filled, tiers[tier].latency_s + tiers.from_root(asked.bytes * tiers.node().ranks));
        total += filled;
        // Between the root and the ranks of its node that take a share.
        if (relays > 1 && !inside && tiers.node().ranks > 1) {
            const Tier& side = tiers.side_by_side();
            const double moved = whole.members * bytes, copied = side.stream > 0 ? moved / side.stream : 0;
            total += side.latency_s + (relays - 1) * side.overhead_s + std::max(2 * copied, tiers.memory_s(moved));
        }
    }
    return total;
}

namespace {

/// What a vector takes up or down a binomial tree whose messages get shorter: nobody carries what it doesn't need.
/// `again`: how often its bytes follow each other over links.
double shrinking_s(const Tiers& tiers, double vector, double again) {
    double total = 0;
    for (double below = tiers.ranks() / 2; below >= 0.5; below /= 2)
        total += tiers[tiers.crossed(std::max(1.0, below))].latency_s;
    const double wires = again * tiers.from_root(vector / tiers.nodes());
    return total + std::max(wires, tiers.node().ranks > 1 ? tiers.memory_s(vector / tiers.nodes()) : 0);
}

/// Each rank has one message under way at a time. Of short ones the MPI takes any number.
bool in_turn(const Asked& asked, double bytes) {
    return asked.tiers.stays(bytes) && asked.spec.find("window") && asked.spec.integer("window", 1) == 1;
}

/// As many as bcast_circulant.cpp takes where nothing is asked for.
double circulant_segments(double vector) {
    if (vector < 32 << 10) return 1;
    return std::max(16.0, std::ceil(vector / (64 << 10)));
}

}  // namespace

std::optional<double> estimate_rooted_vector(const Asked& asked) {
    const Tiers& tiers = asked.tiers;
    const double vector = asked.bytes;
    if (asked.spec.name == "node_pieces")
        return estimate_node_pieces(asked, asked.combines ? NodePieces::reduce : NodePieces::bcast);
    if (asked.spec.name == "ring_gather" || asked.spec.name == "bine" || asked.spec.name == "earliest" ||
        asked.spec.name == "leaders")
        return std::nullopt;
    if (asked.spec.name == "circulant") {
        if (tiers.node().ranks > 1 || asked.combines || asked.spec.find("segments")) return std::nullopt;
        // One segment a rank and round, over distances that halve, again and again; what a rank sends has mostly been
        // there for some rounds. What a rank sends all at once shares its link, so that each round waits for those
        // after it, too.
        const double segments = asked.spec.find("segment") ? asked.segments(vector) : circulant_segments(vector);
        const double part = vector / segments;
        double first = 0, together = 0;
        for (double d = tiers.ranks() / 2; d >= 0.5; d /= 2) {
            const double span = std::max(1.0, std::floor(d));
            first += tiers.round(span, part, Partners::shift) + together * tiers.transfer(tiers.crossed(span), part);
            if (tiers.stays(part) && !in_turn(asked, part)) together += 1;
        }
        const double gap =
            in_turn(asked, part) ? tiers.message(0, part) : std::max(tiers.transfer(0, part), 2 * tiers.busy(0, part));
        return first + (segments - 1) * gap;
    }
    if (asked.spec.name == "scatter_allgather") {
        const auto all =
            estimate_block_exchange(asked, asked.spec.find("allgather").value_or("ring"), vector / tiers.ranks(), 1);
        // Ranks of a node share its link in rounds of their own, which don't end together: measured in simulations,
        // half as much again.
        const double shared = tiers.node().ranks > 1 ? 1.5 : 1;
        return all ? std::optional(shared * *all + shrinking_s(tiers, vector, 2)) : std::nullopt;
    }
    if (asked.spec.name == "reduce_scatter_gather") {
        double part = vector, total = shrinking_s(tiers, vector, 2);
        double whole = 1;  // ranks beyond a power of two give what they have to one of the others first
        while (whole * 2 <= tiers.ranks()) whole *= 2;
        if (whole < tiers.ranks()) total += tiers.message(tiers.crossed(1), vector) + tiers.reduce_s(vector);
        for (double d = 1; d < whole; d *= 2) {
            part /= 2;
            total += tiers.round(d, part, Partners::flip) + tiers.reduce_s(part);
        }
        return total;
    }
    const double relays = relays_of(asked);
    const double cuts = asked.segments(vector);
    const double part = vector / cuts;
    const double combined = asked.combines ? tiers.reduce_s(part) : 0;
    double first = 0;    // until the first segment is through all phases
    double slowest = 0;  // what each further one adds
    double inner = 0;    // what a leader's messages of the phases further in take of its link
    const std::vector<Phase> phases = phases_of(asked, {2});
    for (auto at = phases.rbegin(); at != phases.rend(); ++at) {
        const Phase& whole = *at;
        Phase phase = whole;
        const std::size_t tier = tiers.crossed(phase.members * phase.size / 2);
        const bool inside = tiers[tier].inside;
        // Inside of a node both ends copy what the MPI takes off its sender's hands.
        const double both = inside && !tiers.stays(part) ? 2 : 1;
        // Other ranks of the root's node take a share of its messages.
        if (!inside) phase.members = std::ceil((phase.members - 1) / relays) + 1;
        double hops = 0, copies = 0, filled = 0;
        if (phase.shape.shared && asked.shares) {
            hops = 1, copies = 0, filled = tiers.side_by_side().latency_s + tiers.copy_s(part);
        } else if (is_star(phase)) {
            hops = 1, copies = phase.members - 1;
            filled = star_s(asked, phase, part) + (asked.combines ? combined * copies : 0);
        } else if (phase.shape.kind == TreeShape::Kind::postal) {
            const Postal tree = postal_s(tiers, tier, part, phase.members, phase.shape.radix, combined);
            hops = 1, copies = tree.messages, filled = tree.seconds;
        } else if (phase.shape.kind == TreeShape::Kind::ary) {
            const double radix = phase.shape.radix;
            hops = radix == 1 ? phase.members - 1
                              : std::ceil(std::log(phase.members * (radix - 1) + 1) / std::log(radix)) - 1;
            copies = std::min(radix, phase.members - 1);
            // A chain crosses inner levels between most of its neighbours, and outer ones from group to group.
            double within = phase.size;
            double around = phase.members * phase.size;
            if (radix == 1) {
                for (std::size_t t = tiers.count(); t-- > 0;) {
                    const double reach = std::min(around, t == 0 ? tiers.ranks() : tiers[t - 1].ranks);
                    if (reach <= within) continue;
                    const double crossings = around / within - around / reach;
                    filled += crossings * (tiers.message(t, part) + combined);
                    within = reach;
                }
            } else {
                filled =
                    hops * (tiers.message(tier, part) + (copies - 1) * tiers.transfer(tier, part) + combined * copies);
            }
        } else {
            each_weight(asked, phase, [&](std::size_t crossed, double, double children) {
                hops += 1, copies += children;
                if (in_turn(asked, part)) {
                    filled += children * tiers.message(crossed, part);
                    return;
                }
                // A leader sends to all children at once, so that the first one's subtree waits for the last one's
                // bytes.
                const double copied = tiers[crossed].inside && !tiers.stays(part) ? 2 : 1;  // by both ends
                filled += tiers.message(crossed, part) - tiers.transfer(crossed, part) +
                          copied * tiers.transfer(crossed, part) * (asked.combines ? children : copies) +
                          combined * children + (children - 1) * tiers.busy(crossed, part);
            });
        }
        if (!inside && relays > 1) {  // they share the links
            const double own = tiers.node().edge > 0 ? copies * relays * part / tiers.node().edge : 0;
            filled = std::max(filled, tiers[tier].latency_s + (is_star(phase) ? tiers.from_root(part) : own));
        }
        // What a leader sends to leaders of other groups shares its link with what it sends inside of its own at the
        // same time.
        if (!inside && !asked.combines && !in_turn(asked, part)) {
            filled += inner;
            inner += copies * relays * tiers.transfer(tier, part);
        }
        // Messages inside of a node, of all groups of this phase that are there.
        const double own = tiers.node().ranks, around = phase.members * phase.size;
        const double at_home = inside ? std::max(1.0, own / around) * (whole.members - 1)
                                      : (is_star(phase) ? 0 : std::max(0.0, own / phase.size - 1));
        const double memory = tiers.memory_s(part * at_home);
        filled = asked.combines && is_star(phase) ? filled + memory : std::max(filled, memory);
        first += filled;
        if (inside && relays > 1)
            first += filled;  // to the ranks of the root's node that take a share, and again elsewhere
        const double per_segment =
            inside ? std::max(both * copies * (tiers.transfer(tier, part) + tiers[tier].overhead_s) + combined * copies,
                              memory)
                   : std::max({memory, copies * tiers.transfer(tier, part),
                               (copies + 1) * tiers.busy(tier, part) + combined * copies});
        slowest = std::max(slowest, per_segment);
    }
    return first + (cuts - 1) * slowest;
}

}  // namespace palmette::model
