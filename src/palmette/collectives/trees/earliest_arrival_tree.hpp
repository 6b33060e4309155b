// Greedy earliest-arrival broadcast tree: every informed rank keeps sending to the peer that completes first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "palmette/collectives/trees/topology_tree.hpp"

namespace palmette::collectives {

/// What a message costs: its sender, then the link that it leaves through, and then until its receiver has it.
struct MessageTimes {
    double busy_s = 0, link_s = 0, after_s = 0;
};

/// How an EarliestArrivalTree grows.
struct EarliestForm {
    /// Ranks of its node that a node's first one tells before any other node: from then on they tell other nodes as
    /// well.
    std::int32_t helpers = 2;
    /// A group of nodes that nobody in has heard yet goes before further nodes of a group that has.
    bool groups_first = false;
    /// The tree will be turned round: messages that are ready together share their receiver's link, and its work on
    /// them comes after that.
    bool to_root = false;
    /// Of a message: what it keeps links busy for.
    std::int64_t bytes = 0;
};

/// The tree that comes of playing a broadcast from the root with the costs of the job's levels: overheads keep a rank
/// from its next message, the capacity of a node's edge and of its memory keeps the whole node, latencies are those of
/// what a message crosses. Whoever is free tells the nearest node that hasn't heard, and when all have, ranks of its
/// own node. Turned round in time it is a tree for reductions. "Earliest completing edge first" of Bhat, Raghavendra,
/// Prasanna, "Efficient collective communication in distributed heterogeneous systems", JPDC 63(3), 2003, for hosts
/// with several ranks; with equal latencies between nodes it is the postal model's tree.
///
///   two nodes of three ranks, no helpers        0        what 0 tells first is farthest; 1 and 2 hear while 3 waits
///                                             3  1  2
///                                            4 5
class EarliestArrivalTree {
  public:
    /// Time and memory: nodes times helpers. `job` must outlive the tree. All levels down to nodes have latencies and
    /// overheads.
    EarliestArrivalTree(const Job& job, Position root, const EarliestForm& form);

    /// Parent and children of one position, children in the order in which they are told. No blocks. Time: its node's
    /// ranks.
    TreeNeighbours of(Position position) const;

    /// So many nodes a rank may play.
    static constexpr std::int32_t most_nodes = 1024;
    /// Why the job's costs don't do, or nothing.
    static std::optional<std::string> refuse(const Job& job);

  private:
    /// A rank of a node, counted from the one that hears first.
    using Member = std::int32_t;
    struct Call {
        std::int32_t node = -1;  ///< who is told
        Member caller = 0;
    };
    struct NodeState {
        std::int32_t parent = -1;
        Member parent_caller = 0;
        Member told = 0;              ///< helpers who have heard
        double link_free_s = 0;       ///< when the node's edge is
        std::vector<Call> calls;      ///< to other nodes, in order of time
        std::vector<double> stops_s;  ///< by member: when it ends telling other nodes
    };
    class Play;

    MessageTimes times_inside() const;
    /// After which a rank begins its next message.
    double busy_s(const MessageTimes& cost) const;
    Position position_of(std::int32_t node, Member member) const;
    /// By member: its parent inside of the node (-1 for the first), as they are told one after the other.
    std::vector<Member> parents_inside(std::int32_t node) const;

    const Job& job_;
    Position root_;
    EarliestForm form_;
    std::vector<NodeState> nodes_;
};

}  // namespace palmette::collectives
