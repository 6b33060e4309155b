// Formulas of trees: gather and scatter (Kandalla et al., IPDPS 2010, level by level), bcast and reduce.
#include <algorithm>
#include <cmath>

#include "palmette/collectives/tree_shape.hpp"
#include "palmette/model/estimate_families.hpp"

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

/// Rounds of a k-nomial tree of a phase, the lightest first: visit(crossed tier, ranks below a child, children of that weight).
template <class Visit>
void each_weight(const Asked& asked, const Phase& phase, const Visit& visit) {
    const double radix = phase.shape.radix;
    for (double weight = 1; weight < phase.members; weight *= radix) {
        const double children = std::min(radix - 1, std::ceil(phase.members / weight) - 1);
        const double below = std::min(weight, phase.members - weight) * phase.size;
        visit(asked.tiers.crossed(weight * phase.size), below, children);
    }
}

/// A star: the leader takes from `members - 1` others, or gives to them, `bytes` each; `copies`: the same bytes for each rank below.
double star_s(const Asked& asked, const Phase& phase, double bytes, double overhead_share = 1) {
    const Tiers& tiers = asked.tiers;
    const double all = phase.members * phase.size;
    double longest = 0, work = 0, within = phase.size;
    for (std::size_t t = tiers.count(); t-- > 0;) {
        const double around = std::min(all, t == 0 ? tiers.ranks() : tiers[t - 1].ranks);
        if (around <= within) continue;
        const double messages = (around - within) / phase.size;
        within = around;
        work += messages * tiers[t].overhead_s * overhead_share;
        if (tiers[t].inside) work += messages * bytes / tiers[t].stream;
    }
    for (std::size_t t = 0; t < tiers.count(); ++t)
        if (!tiers[t].inside && tiers[t].edge > 0 && tiers[t].ranks < all)
            longest =
                std::max(longest, (all - std::max(tiers[t].ranks, phase.size)) / phase.size * bytes / tiers[t].edge);
    const std::size_t outermost = tiers.crossed(all / 2);
    return tiers.message(outermost, bytes) - tiers.transfer(outermost, bytes) +
           std::max({longest, work, tiers.transfer(outermost, bytes)});
}

}  // namespace

double Asked::segments(double length) const {
    const auto segment = static_cast<double>(spec.size("segment", 0));
    if (segment <= 0 || length <= segment) return 1;
    return std::min(64.0, std::ceil(length / segment));
}

std::optional<double> estimate_rooted_blocks(const Asked& asked) {
    if (asked.spec.find("relays")) return std::nullopt;
    double total = 0;
    for (const Phase& phase : phases_of(asked, {2})) {
        if (phase.shape.is_star()) {
            total += star_s(asked, phase, asked.bytes * phase.size);
            continue;
        }
        if (phase.shape.kind != TreeShape::Kind::nomial) return std::nullopt;
        each_weight(asked, phase, [&](std::size_t tier, double below, double children) {
            total += asked.tiers.message(tier, asked.bytes * below) +
                     (children - 1) * asked.tiers.transfer(tier, asked.bytes * below) +
                     (children - 1) * asked.tiers[tier].overhead_s;
        });
    }
    return total;
}

std::optional<double> estimate_rooted_vector(const Asked& asked) {
    if (asked.spec.find("relays")) return std::nullopt;
    const Tiers& tiers = asked.tiers;
    const double vector = asked.bytes;
    if (asked.spec.name == "scatter_allgather") {
        const auto ring =
            estimate_block_exchange(asked, asked.spec.find("allgather").value_or("ring"), vector / tiers.ranks(), 1);
        if (!ring) return std::nullopt;
        return *ring + vector / std::max(1.0, tiers.rate(0)) + tiers[0].latency_s * std::ceil(std::log2(tiers.ranks()));
    }
    const double cuts = asked.segments(vector);
    const double part = vector / cuts;
    const double combined = asked.combines ? tiers.reduce_s(part) : 0;
    double first = 0;    // until the first segment is through all phases
    double slowest = 0;  // what each further one adds
    for (const Phase& phase : phases_of(asked, {2})) {
        const std::size_t tier = tiers.crossed(phase.members * phase.size / 2);
        const double both = tiers[tier].inside ? 2 : 1;
        double hops = 0, copies = 0, filled = 0;
        if (phase.shape.kind == TreeShape::Kind::postal) return std::nullopt;
        if (phase.shape.shared) {
            hops = 1, copies = 0, filled = tiers.side_by_side().latency_s + tiers.copy_s(part);
        } else if (phase.shape.is_star()) {
            hops = 1, copies = phase.members - 1;
            filled = star_s(asked, phase, part) + (asked.combines ? combined * copies : 0);
        } else if (phase.shape.kind == TreeShape::Kind::ary) {
            const double radix = phase.shape.radix;
            hops = radix == 1 ? phase.members - 1
                              : std::ceil(std::log(phase.members * (radix - 1) + 1) / std::log(radix)) - 1;
            copies = std::min(radix, phase.members - 1);
            // A chain crosses inner levels between most of its neighbours, and outer ones from group to group.
            double longest_hop = 0, inner = phase.size;
            double around = phase.members * phase.size;
            if (radix == 1) {
                for (std::size_t t = tiers.count(); t-- > 0;) {
                    const double reach = std::min(around, t == 0 ? tiers.ranks() : tiers[t - 1].ranks);
                    if (reach <= inner) continue;
                    const double crossings = around / inner - around / reach;
                    filled += crossings * (tiers.message(t, part) + combined + (tiers[t].inside ? 0 : 0));
                    longest_hop = std::max(longest_hop, tiers.transfer(t, part));
                    inner = reach;
                }
            } else {
                filled =
                    hops * (tiers.message(tier, part) + (copies - 1) * tiers.transfer(tier, part) + combined * copies);
            }
        } else {
            each_weight(asked, phase, [&](std::size_t crossed, double, double children) {
                hops += 1, copies += children;
                // A leader sends to all children at once, so that the first one's subtree waits for the last one's bytes.
                filled += tiers.message(crossed, part) - tiers.transfer(crossed, part) +
                          tiers.transfer(crossed, part) * (asked.combines ? children : copies) + combined * children;
            });
        }
        first += filled;
        const double per_segment =
            tiers[tier].inside
                ? both * copies * (tiers.transfer(tier, part) + tiers[tier].overhead_s) + combined * copies
                : std::max(copies * tiers.transfer(tier, part),
                           (copies + 1) * tiers[tier].overhead_s + combined * copies);
        slowest = std::max(slowest, per_segment);
    }
    return first + (cuts - 1) * slowest;
}

}  // namespace palmette::model
