// Formulas of alltoall.
#include <algorithm>
#include <cmath>

#include "palmette/model/estimate/estimate_families.hpp"

namespace palmette::model {

std::optional<double> estimate_alltoall(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    const double b = input.bytes, p = tiers.ranks();
    const std::string_view name = input.spec.name;
    if (name == "linear" || name == "pairwise") return tiers.all_to_all(b);
    if (name == "bruck") {
        const double radix = input.spec.integer("radix", 2, 2);
        double total = 0;
        for (double d = 1; d < p; d *= radix) {
            // Messages for the other digits of this position are outstanding concurrently.
            const double digits = std::min(radix, std::ceil(p / d)) - 1;
            const double moved = b * p * digits / (digits + 1);
            total += tiers.round(std::min(d * (digits + 1) / 2, p / 2), moved, Partners::shift) +
                     2 * tiers.copy_s(moved) + (digits - 1) * 2 * tiers[tiers.crossed(d)].overhead_s;
        }
        return total;
    }
    if (name == "leaders" && !any_of(input, {"level", "segment", "split", "rounds", "inside"})) {
        const double group = tiers.node().ranks, nodes = tiers.nodes();
        if (nodes <= 1) return std::nullopt;
        const double many = std::min(group, static_cast<double>(input.spec.integer("leaders", 1)));
        const Tier& side = tiers.intra_node();
        const double share = b * group * nodes / many;  // sent by a member to one leader, or received from it
        const double ends = group > 1 ? side.latency_s + std::max((group - 1) * (side.overhead_s + share / side.stream),
                                                                  tiers.memory_s(group * b * group * nodes))
                                      : 0;
        const double more = group > 1 ? (many - 1) * 2 * side.overhead_s : 0;
        double between = tiers.between_nodes((nodes - 1) / group, b * group * group);
        between += (std::ceil((nodes - 1) / many) - std::ceil((nodes - 1) / group)) * 2 * tiers[0].overhead_s;
        return 2 * (ends + more) + between + 2 * tiers.copy_s(b * p * group / many);
    }
    if (name != "node_aware" || input.spec.find("level") || input.spec.find("segment")) return std::nullopt;
    const double group = tiers.node().ranks, nodes = tiers.nodes();
    const Tier& side = tiers.intra_node();
    double links = 0, work = 0;
    for (std::size_t t = 0; t + 1 < tiers.count(); ++t)
        if (!tiers[t].inside && tiers[t].edge > 0 && tiers[t].ranks < p)
            links = std::max(links, tiers[t].ranks * (p - tiers[t].ranks) * b / tiers[t].edge);
    work = (nodes - 1) * 2 * tiers.node().overhead_s;
    const bool shared = input.spec.find("inside") == "shared" && input.shares;
    const double pulls = (group - 1) * nodes;
    const double forwarded =
        group > 1 && shared ? 2 * side.latency_s + std::max(pulls * assumed::cache_miss_s + 2 * tiers.copy_s(b * p),
                                                            tiers.memory_s(2 * group * b * p))
        : group > 1         ? side.latency_s + std::max(2 * (group - 1) * (nodes * b / side.stream + side.overhead_s),
                                                        tiers.memory_s(group * (group - 1) * nodes * b))
                            : 0;
    const double packed = 2 * tiers.copy_s(b * p);
    return (nodes > 1 ? tiers[0].latency_s : 0) + std::max(links, work) + forwarded + packed;
}

}  // namespace palmette::model
