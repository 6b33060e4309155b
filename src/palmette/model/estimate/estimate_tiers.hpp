// A job as a regular tree, and what one round of messages takes on it: the building blocks of the formulas.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "palmette/model/costs.hpp"

namespace palmette::model {

/// One level of the job, the last one being ranks that no level tells apart.
struct Tier {
    std::string_view name;
    double ranks = 1;            ///< in a large group
    double most = 1, least = 1;  ///< in the largest group, however far it is from the others, and in the smallest one
    double groups = 1;
    double latency_s = 0, overhead_s = 0;
    double stream = 0;    ///< bytes per second of one pair; 0: unlimited
    double edge = 0;      ///< bytes per second of the slowest edge; 0: unlimited
    bool inside = false;  ///< of a node: messages are copies by both ranks
};

/// Who sends in a round in which every rank has a partner.
enum class Partners : std::uint8_t {
    shift,  ///< the rank so many places further
    flip,   ///< the rank with one bit changed: groups smaller than the distance send with all ranks, larger ones not at
            ///< all
};

class Tiers {
  public:
    /// Ranks talk in the order of the topology.
    Tiers(const topology::Job& job, const Costs& costs);
    /// The same, with ranks that talk in an order that knows nothing of the topology.
    Tiers in_rank_order() const;

    bool in_topology_order() const { return in_topology_order_; }
    double ranks() const { return ranks_; }
    double nodes() const { return nodes_; }
    std::size_t count() const { return tiers_.size(); }
    /// Ranks of the smaller one of the first and the last node: a job that doesn't fill its last node is what most
    /// uneven ones are.
    double fewest() const { return fewest_; }
    /// All nodes have as many ranks.
    bool even() const { return nodes_ * node().ranks == ranks_; }
    const Tier& operator[](std::size_t index) const { return tiers_[index]; }
    const Tier& node() const { return tiers_[node_]; }
    /// The level of ranks of one node.
    const Tier& side_by_side() const { return tiers_.back(); }
    std::size_t named(std::string_view level) const;  ///< the level `node` where the job lacks it

    /// The outermost tier that messages over a distance of `span` positions have to cross.
    std::size_t crossed(double span) const;
    /// Bytes per second of one pair that `tier` is the outermost to part; 0: unlimited.
    double rate(std::size_t tier) const;
    /// Seconds that `bytes` take such a pair, and with the latency and the waiting of long messages.
    double transfer(std::size_t tier, double bytes) const;
    double message(std::size_t tier, double bytes) const;

    /// For how long a message keeps one of its ends busy, apart from copies inside of a node.
    double busy(std::size_t tier, double bytes) const;
    /// Whether a message of so many bytes keeps its sender until it has arrived: the MPI takes no copy of it.
    bool stays(double bytes) const { return bytes > static_cast<double>(assumed::eager_copy_bytes); }
    /// What both ends spend on buffers of the MPI.
    double buffered(std::size_t tier, double bytes) const;

    /// Every rank (or one of each `each` neighbours) sends `bytes` to a partner `distance` positions away.
    double round(double distance, double bytes, Partners partners, double each = 1) const;
    /// Every rank sends `bytes` to every other one, all at once.
    double everybody(double bytes) const;

    /// Every rank sends so many messages to other nodes, spread over all of them, and gets as many.
    double between_nodes(double messages, double bytes) const;
    /// The root's node sends `bytes` to each other one, or takes them: what that takes of the links.
    double from_root(double bytes) const;
    /// Every rank sends so many messages to others of its node, and gets as many.
    double within_node(double messages, double bytes) const;
    /// What messages inside of a node take at least that carry so many bytes together.
    double memory_s(double bytes) const;

    double copy_s(double bytes) const { return bytes / copy_; }
    double reduce_s(double bytes) const { return bytes / reduce_; }

  private:
    std::vector<Tier> tiers_;
    std::size_t node_ = 0;
    double ranks_, nodes_, eager_, eager_copy_, copy_, reduce_;
    double together_ = 0;  ///< bytes per second of all messages inside of a node; 0: unlimited
    double fewest_ = 1;
    bool in_topology_order_ = true;
};

}  // namespace palmette::model
