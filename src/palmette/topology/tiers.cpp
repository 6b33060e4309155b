#include "palmette/topology/tiers.hpp"

#include <algorithm>
#include <cmath>

namespace palmette::topology {

Tiers::Tiers(const Job& job, const Costs& costs)
    : ranks_(job.size()),
      nodes_(job.nodes().groups.count()),
      eager_(static_cast<double>(costs.eager_bytes)),
      eager_copy_(costs.eager_copy_bytes_per_s),
      copy_(costs.copy_bytes_per_s.value),
      reduce_(costs.reduce_bytes_per_s.value) {
    const Partition& nodes = job.nodes().groups;
    fewest_ = std::min(nodes.size_of(0), nodes.size_of(nodes.count() - 1));
    bool inside = false;
    tiers_.reserve(job.levels().size() + 1);
    for (std::size_t l = 0; l <= job.levels().size(); ++l) {
        const MessageCosts& message = costs.levels[l];
        Tier tier;
        tier.latency_s = message.latency_s.value;
        tier.overhead_s = message.overhead_s.value;
        tier.stream = message.stream_bytes_per_s.value;
        tier.inside = inside;
        if (inside && message.together_bytes_per_s > 0)
            together_ =
                together_ > 0 ? std::min(together_, message.together_bytes_per_s) : message.together_bytes_per_s;
        if (l < job.levels().size()) {
            const JobLevel& level = job.levels()[l];
            tier.name = level.name;
            // Where group sizes differ a lot, the largest is no estimate of the others.
            const double mean = std::ceil(static_cast<double>(job.size()) / level.groups.count());
            tier.ranks = level.groups.largest();
            if (tier.ranks > 2 * mean) tier.ranks = mean;
            tier.most = level.groups.largest();
            tier.least = level.groups.smallest();
            tier.groups = level.groups.count();
            tier.edge = level.slowest_edge_bytes_per_s;
            if (tier.edge <= 0 && level.name == "node") tier.edge = costs.unknown_node_edge_bytes_per_s;
            if (level.name == "node") {
                node_ = l;
                inside = true;
            }
        }
        tiers_.push_back(tier);
    }
}

Tiers Tiers::in_rank_order() const {
    Tiers out = *this;
    out.in_topology_order_ = false;
    return out;
}

std::size_t Tiers::named(std::string_view level) const {
    for (std::size_t t = 0; t + 1 < tiers_.size(); ++t)
        if (tiers_[t].name == level) return t;
    return node_;
}

std::size_t Tiers::crossed(double span) const {
    if (!in_topology_order_) return 0;
    for (std::size_t t = 0; t + 1 < tiers_.size(); ++t)
        if (tiers_[t].ranks <= span) return t;
    return tiers_.size() - 1;
}

double Tiers::rate(std::size_t tier) const {
    double least = tiers_[tier].stream;
    for (std::size_t t = tier; t <= node_; ++t)
        if (tiers_[t].edge > 0 && (least == 0 || tiers_[t].edge < least)) least = tiers_[t].edge;
    return least;
}

double Tiers::transfer(std::size_t tier, double bytes) const {
    const double least = rate(tier);
    return least > 0 ? bytes / least : 0;
}

double Tiers::message(std::size_t tier, double bytes) const {
    const double rendezvous = bytes > eager_ && !tiers_[tier].inside ? 2 : 0;
    return tiers_[tier].latency_s * (1 + rendezvous) + transfer(tier, bytes) + buffered(tier, bytes);
}

double Tiers::busy(std::size_t tier, double bytes) const {
    return tiers_[tier].overhead_s + (tiers_[tier].inside ? 0 : eager_copy_s(bytes, eager_copy_));
}

double Tiers::buffered(std::size_t tier, double bytes) const {
    return 2 * (busy(tier, bytes) - tiers_[tier].overhead_s);
}

namespace {

/// Ranks of a group that have their partner, `distance` away by XOR, in another group: none where the groups' borders
/// are borders of the blocks that exchange.
double straddling(double distance, double group) {
    if (std::fmod(group, 2 * distance) == 0) return 0;
    return std::min(group, std::max(1.0, 1.5 * distance));
}

}  // namespace

double Tiers::round(double distance, double bytes, Partners partners, double each) const {
    const std::size_t outermost = crossed(distance);
    double longest = transfer(outermost, bytes);
    // Intra-node, a rank copies both what it sends and what it receives.
    if (tiers_[outermost].inside) longest *= 2;
    // Intra-node pairs contend for the memory bandwidth of the node.
    const double own = node().ranks;
    double local_pairs = 0;
    if (tiers_[outermost].inside)
        local_pairs = own;
    else if (!in_topology_order_)
        local_pairs = own * own / ranks_;
    else if (partners == Partners::shift)
        local_pairs = std::max(0.0, own - distance);
    longest = std::max(longest, memory_s(local_pairs / each * bytes));
    for (std::size_t t = 0; t <= node_; ++t) {
        const Tier& tier = tiers_[t];
        if (tier.edge <= 0 || tier.ranks >= ranks_) continue;
        double senders = std::min(distance, tier.ranks);
        if (!in_topology_order_)
            senders = tier.ranks * (1 - tier.ranks / ranks_);
        else if (partners == Partners::flip)
            senders = distance >= tier.ranks ? tier.ranks : straddling(distance, tier.ranks);
        else if (distance > ranks_ / 2)
            senders = std::min(ranks_ - distance, tier.ranks);
        longest = std::max(longest, std::max(senders > 0 ? 1.0 : 0.0, senders / each) * bytes / tier.edge);
    }
    const double rendezvous = bytes > eager_ && !tiers_[outermost].inside ? 2 : 0;
    return longest + tiers_[outermost].latency_s * (1 + rendezvous) + buffered(outermost, bytes);
}

double Tiers::all_to_all(double bytes) const {
    double longest = memory_s(node().ranks * (node().ranks - 1) * bytes);
    double work = 0;
    double within = 1;  // ranks that inner tiers don't tell apart
    for (std::size_t t = tiers_.size(); t-- > 0;) {
        const Tier& tier = tiers_[t];
        const double around = t == 0 ? ranks_ : tiers_[t - 1].ranks;
        const double partners = around - within;
        within = around;
        // The outermost latency already includes the overheads of both ends of one message.
        work += (t == 0 ? partners - 1 : partners) * 2 * busy(t, bytes);
        if (tier.inside)
            work += 2 * partners * bytes / tier.stream;
        else if (tier.edge > 0)
            longest = std::max(longest, tier.ranks * (ranks_ - tier.ranks) * bytes / tier.edge);
    }
    const double rendezvous = bytes > eager_ && !tiers_[0].inside ? 2 : 0;
    return tiers_[crossed(ranks_)].latency_s * (1 + rendezvous) + std::max(longest, work);
}

double Tiers::spread_within(std::size_t group, double chunks, double bytes, bool combine) const {
    double total = 0;
    for (std::size_t t = tiers_.size(); t-- > group + 1;) {
        const Tier& tier = tiers_[t];
        const double around = tiers_[t - 1].ranks, own = t + 1 == tiers_.size() ? 1 : tier.ranks;
        if (around <= own) continue;
        const double messages = chunks * (around / own - 1) / around;  // of each rank
        double longest = 0, work = messages * (2 * busy(t, bytes) + (combine ? reduce_s(bytes) : 0));
        if (tier.inside) {
            work += 2 * messages * bytes / tier.stream;
            longest = memory_s(node().ranks * messages * bytes);
        } else if (tier.edge > 0) {
            longest = own * messages * bytes / tier.edge;
        }
        const double rendezvous = bytes > eager_ && !tier.inside ? 2 : 0;
        total += tier.latency_s * (1 + rendezvous) + std::max(longest, work);
    }
    return total;
}

double Tiers::memory_s(double bytes) const { return together_ > 0 ? bytes / together_ : 0; }

double Tiers::between_nodes(double messages, double bytes) const {
    if (messages <= 0 || nodes_ <= 1) return 0;
    const Tier& outermost = tiers_[0];
    const double own = node().ranks;
    double longest = std::max(transfer(0, bytes), (std::ceil(messages) - 1) * 2 * busy(0, bytes));
    for (std::size_t t = 0; t <= node_; ++t)
        if (tiers_[t].edge > 0 && tiers_[t].ranks < ranks_)
            longest = std::max(longest, tiers_[t].ranks * messages * bytes * (ranks_ - tiers_[t].ranks) /
                                            (ranks_ - own) / tiers_[t].edge);
    const double rendezvous = bytes > eager_ ? 2 : 0;
    return outermost.latency_s * (1 + rendezvous) + longest + buffered(0, bytes);
}

double Tiers::from_root(double bytes) const {
    double longest = 0;
    for (std::size_t t = 0; t <= node_; ++t)
        if (tiers_[t].edge > 0 && tiers_[t].ranks < ranks_)
            longest = std::max(longest, (ranks_ - tiers_[t].ranks) / node().ranks * bytes / tiers_[t].edge);
    return longest;
}

double Tiers::within_node(double messages, double bytes) const {
    if (messages <= 0 || node().ranks <= 1) return 0;
    const Tier& side = intra_node();
    const double copied = side.stream > 0 ? bytes / side.stream : 0;
    const double work = copied + (std::ceil(messages) - 1) * 2 * (side.overhead_s + copied);
    return side.latency_s + std::max(work, memory_s(node().ranks * messages * bytes));
}

}  // namespace palmette::topology
