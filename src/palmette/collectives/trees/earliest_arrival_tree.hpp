// Greedy earliest-arrival broadcast tree: every informed rank keeps sending to the peer that completes first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "palmette/collectives/trees/topology_tree.hpp"

namespace palmette::collectives {

/// Cost of a message: sender overhead, occupancy of the outgoing link, and remaining time to its arrival.
struct MessageTimes {
    double busy_s = 0, link_s = 0, after_s = 0;
};

/// Parameters of an EarliestArrivalTree.
struct EarliestForm {
    /// Ranks of its own node that a node's first rank informs before any other node: they then inform other nodes as
    /// well.
    std::int32_t helpers = 2;
    /// Groups of nodes without any informed node go before further nodes of other groups.
    bool groups_first = false;
    /// For reductions: the tree will be reversed. Messages that are ready together share their receiver's link, and its
    /// work on them comes after that.
    bool to_root = false;
    /// Payload of a message, which occupies links.
    std::int64_t bytes = 0;
};

/// Tree from simulating a broadcast from the root with the costs of the job's levels: overheads occupy a rank until its
/// next message, the capacity of a node's edge and of its memory is shared by the whole node, latencies are those of
/// the outermost level that a message crosses. Every free informed rank sends to the nearest uninformed node, and once
/// all nodes are informed, to ranks of its own node. Reversed in time it is a reduction tree. "Earliest completing edge
/// first" of Bhat, Raghavendra, Prasanna, "Efficient collective communication in distributed heterogeneous systems",
/// JPDC 63(3), 2003, for hosts with several ranks; with equal latencies between nodes it is the postal model's tree.
///
///   two nodes of three ranks, no helpers        0        0 sends to 3, the farthest, first; 1 and 2 receive meanwhile
///                                             3  1  2
///                                            4 5
class EarliestArrivalTree {
  public:
    /// Time and memory: nodes times helpers. `job` must outlive the tree. All levels down to nodes have latencies and
    /// overheads.
    EarliestArrivalTree(const Job& job, Position root, const EarliestForm& form);

    /// Parent and children of one position, children in the order in which they are sent to. No blocks. Time: its
    /// node's ranks.
    TreeNeighbours of(Position position) const;

    /// Upper bound of the nodes that a rank simulates.
    static constexpr std::int32_t most_nodes = 1024;
    /// Why the job's costs don't suffice, or nothing.
    static std::optional<std::string> refuse(const Job& job);

  private:
    /// A rank of a node, numbered from the one that is informed first.
    using Member = std::int32_t;
    struct Call {
        std::int32_t node = -1;  ///< receiver
        Member caller = 0;
    };
    struct NodeState {
        std::int32_t parent = -1;
        Member parent_caller = 0;
        Member informed_helpers = 0;  ///< helpers that are informed
        double link_free_s = 0;       ///< when the node's edge is free
        std::vector<Call> calls;      ///< sends to other nodes, in order of time
        std::vector<double> stops_s;  ///< by member: when its last send to another node ends
    };
    class Simulation;

    MessageTimes times_inside() const;
    /// Time until a rank can begin its next message.
    double busy_s(const MessageTimes& cost) const;
    Position position_of(std::int32_t node, Member member) const;
    /// By member: its parent inside of the node (-1 for the first), in the order of sends.
    std::vector<Member> parents_inside(std::int32_t node) const;

    const Job& job_;
    Position root_;
    EarliestForm form_;
    std::vector<NodeState> nodes_;
};

}  // namespace palmette::collectives
