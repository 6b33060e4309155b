// A job approximated as a regular tree, and the time of one round of messages on it: building blocks of the formulas.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "palmette/topology/job_costs.hpp"

namespace palmette::topology {

/// One level of the job; the last tier stands for ranks that no level tells apart.
struct Tier {
    std::string_view name;
    double ranks = 1;            ///< in a large group, assumed for all
    double most = 1, least = 1;  ///< in the largest group, outlier or not, and in the smallest one
    double groups = 1;
    double latency_s = 0, overhead_s = 0;
    double stream = 0;    ///< bytes per second of one pair; 0: unlimited
    double edge = 0;      ///< bytes per second of the slowest edge; 0: unlimited
    bool inside = false;  ///< intra-node: each message is copied by both ranks
};

/// How partners are chosen in a round in which every rank has one.
enum class Partners : std::uint8_t {
    shift,  ///< the rank at this distance
    flip,   ///< rank XOR distance: groups up to the distance send with all ranks, larger ones not at all
};

class Tiers {
  public:
    /// Communication in topology order.
    Tiers(const Job& job, const Costs& costs);
    /// Tiers for communication in rank order, unrelated to the topology.
    Tiers in_rank_order() const;

    bool in_topology_order() const { return in_topology_order_; }
    double ranks() const { return ranks_; }
    double nodes() const { return nodes_; }
    std::size_t count() const { return tiers_.size(); }
    /// Ranks of the smaller one of the first and the last node: most uneven jobs just don't fill their last node.
    double fewest() const { return fewest_; }
    /// All nodes have as many ranks.
    bool even() const { return nodes_ * node().ranks == ranks_; }
    const Tier& operator[](std::size_t index) const { return tiers_[index]; }
    const Tier& node() const { return tiers_[node_]; }
    /// The innermost tier: messages between ranks of one node.
    const Tier& intra_node() const { return tiers_.back(); }
    std::size_t named(std::string_view level) const;  ///< the level `node` where the job lacks it

    /// The outermost tier that messages over a distance of `span` positions cross.
    std::size_t crossed(double span) const;
    /// Bandwidth of one pair of ranks whose outermost distinguishing tier is `tier`; 0: unlimited.
    double rate(std::size_t tier) const;
    /// Transfer time of `bytes` for such a pair, and the whole time of a message, with latency and rendezvous.
    double transfer(std::size_t tier, double bytes) const;
    double message(std::size_t tier, double bytes) const;

    /// CPU time of each end of a message: overhead and eager copy, without intra-node copies.
    double busy(std::size_t tier, double bytes) const;
    /// Whether a send of `bytes` bytes completes only on arrival: the MPI doesn't buffer it.
    bool is_unbuffered(double bytes) const { return bytes > static_cast<double>(assumed::eager_copy_bytes); }
    /// Time of both ends for copies through eager buffers.
    double buffered(std::size_t tier, double bytes) const;

    /// One round: every rank (or one of each `each` neighbours) sends `bytes` to a partner `distance` positions away.
    double round(double distance, double bytes, Partners partners, double each = 1) const;
    /// Linear all-to-all: every rank sends `bytes` to every other one, all messages outstanding at once.
    double all_to_all(double bytes) const;
    /// In each group of a tier `chunks` of `bytes` come from all ranks, level by level, each to a rank of its own that
    /// combines them, or go back.
    double spread_within(std::size_t group, double chunks, double bytes, bool combine) const;

    /// Every rank sends and receives so many inter-node messages, spread over all nodes.
    double between_nodes(double messages, double bytes) const;
    /// Link time where the root's node sends `bytes` to each other node, or receives them.
    double from_root(double bytes) const;
    /// Every rank sends and receives so many intra-node messages.
    double within_node(double messages, double bytes) const;
    /// Lower bound on the time of intra-node messages from the aggregate memory bandwidth, `bytes` in total.
    double memory_s(double bytes) const;

    double copy_s(double bytes) const { return bytes / copy_; }
    double reduce_s(double bytes) const { return bytes / reduce_; }
    /// Combining what another rank of the node has exposed: no faster than reading it.
    double pull_reduce_s(double bytes) const { return std::max(copy_s(bytes), reduce_s(bytes)); }

  private:
    std::vector<Tier> tiers_;
    std::size_t node_ = 0;
    double ranks_, nodes_, eager_, eager_copy_, copy_, reduce_;
    double together_ = 0;  ///< aggregate bandwidth of intra-node messages; 0: unlimited
    double fewest_ = 1;
    bool in_topology_order_ = true;
};

}  // namespace palmette::topology
