// Lower bounds on the time of a collective on a job's tree, whatever the plan or library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palmette/model/bound/crossing.hpp"
#include "palmette/model/bound/spread_of_job.hpp"
#include "palmette/plan/plan.hpp"

namespace palmette::model {

/// The limit and what sets it.
struct Bound {
    double seconds = 0;
    /// link: the edge of one group; links: the aggregate capacity of the edges of a level; aggregators: that of these
    /// edges and of the links of aggregators, as far as they spare them bytes; latency: of one message;
    /// rounds: the critical path of dependent messages; copy, reduce: memory bandwidth of a rank; none: nothing is
    /// known
    std::string kind = "none";
    std::string level;
    std::int32_t group = -1;  ///< for link
    std::string group_name;   ///< for link, where names are known
    bool outwards = false;    ///< for link: bytes that leave the group, else bytes that enter
    std::int64_t bytes = 0;   ///< bytes that must cross, be copied or be reduced
    double capacity_bytes_per_s = 0;
};

/// CPU time of the two ends of a message (gaps of the postal model).
struct MessageEnds {
    Gaps send, receive;
};

/// Parameters that the job's tree doesn't give.
struct BoundOptions {
    /// By name of a level: the number of ports that every group's edge consists of. Ranks are bound to ports round
    /// robin and carry equal shares, so that L ranks on k ports use L / (k ceil(L / k)) of the capacity.
    std::vector<std::pair<std::string, std::int32_t>> ports;
    /// Maximum number of messages in flight per rank. 0: as many as it can start in one latency where overheads are
    /// known, else unlimited.
    std::int32_t at_once = 0;
    /// Ranks of a node communicate by messages only, as if each had its own node. Otherwise any number of them can read
    /// shared memory.
    bool messages_only = false;
    /// With `messages_only`: the gaps at both ends of a message; unset: the overhead of the level that it crosses.
    std::optional<MessageEnds> ends = {};
};

/// The edge of one group.
struct EdgeTerm {
    std::int32_t group = -1;
    std::string name;  ///< where names are known
    Traffic traffic;
    double capacity_bytes_per_s = 0;  ///< 0: unknown
    double seconds = 0;               ///< time of the slower direction
    bool outwards = false;            ///< whether the slower direction is outwards
};

/// One level: its slowest edge, and the aggregate of all its edges.
struct LevelTerms {
    std::string level;
    std::int32_t groups = 0;
    std::int32_t unknown = 0;  ///< edges without a capacity
    EdgeTerm worst;            ///< group -1 where no capacity is known
    /// Bytes that leave groups, each way, without reduction or multicast in the network.
    double together_bytes = 0;        ///< not an integer: an all-to-all of a million ranks would overflow
    double together_bytes_per_s = 0;  ///< 0 where a capacity is unknown
    double together_s = 0;
    /// Bytes of an allreduce in which the job's aggregators above this level take part; 0: no bound.
    double with_aggregators_bytes = 0;
    double with_aggregators_bytes_per_s = 0;
    double with_aggregators_s = 0;
    double latency_s = 0;  ///< 0: unknown
    bool crossed = false;  ///< some message must cross this level
};

/// Critical path of dependent messages until all members are informed: rounds times the smallest latency, or the bound
/// of the postal model.
struct RoundsTerm {
    std::int64_t members = 0;  ///< nodes, or ranks with `messages_only`
    std::int64_t at_once = 0;  ///< messages in flight per member; 0: unlimited, so there is no bound
    std::int32_t rounds = 0;
    double latency_s = 0;
    double spread_s = 0;  ///< with `messages_only`: by the postal model; 0: no bound
    double seconds = 0;   ///< the larger of the two
};

/// The least time of schedules in which a member sends one message at a time, and receives one at a time
/// (one_port.hpp): what short vectors can be compared with. It is no limit of `Bound`, since messages in flight
/// together share latency.
struct OnePortTerm {
    std::int64_t members = 0;  ///< nodes, or ranks with `messages_only`
    std::int64_t blocks = 0;   ///< bcast, reduce, allreduce and scan: of the vector, in the fewest rounds; else 0
    std::int64_t rounds = 0;   ///< n - 1 + q of n blocks, or q, where messages may have any length
    double latency_s = 0;
    std::int64_t bytes = 0;  ///< size of the vector, or of the smallest member's block
    double bytes_per_s = 0;  ///< bandwidth of the fastest member's edge; 0: unknown
    double seconds = 0;      ///< 0: no latency is known
};

/// Lower bound on the copies or reductions of the busiest rank.
struct MemoryTerm {
    std::int64_t bytes = 0;
    double bytes_per_s = 0;  ///< 0: unknown
    double seconds = 0;
};

/// All terms that bound a collective, and the resulting limits.
struct BoundTerms {
    std::vector<LevelTerms> levels;  ///< outermost first
    RoundsTerm rounds;
    OnePortTerm one_port;
    MemoryTerm copy;
    MemoryTerm reduce;
    Bound limit;             ///< switches only forward
    Bound limit_in_network;  ///< the job's aggregators also reduce; every switch does, and multicasts, if it has none
};

/// Lower bounds on the time of `request`.
///
/// *One edge.* Bytes that must cross the edge of a group of s of p ranks (a cut, crossing.hpp), over its capacity in
/// that direction.
///
/// *All edges of a level.* Without in-network reduction and multicast a message leaves one group and enters one other.
/// To combine one element of k groups and distribute the sum to all of them takes 2 (k-1) such messages (one-way
/// gossip), so an allreduce of n bytes needs 2 (k-1) n / (aggregate capacity). Analogous bounds hold with (k-1) p m for
/// allgather and reduce_scatter and with (k-1) n for bcast and reduce, but there the slowest edge is never the weaker
/// bound. For the others, the bytes that leave all groups are added up.
///
/// *Aggregators.* Through an aggregator above k groups, with links of C_a in all, an element leaves each group once and
/// takes k messages over C_a; without it 2 (k-1) leave the groups. Mixing both is never worse than anything between, so
/// an allreduce takes 2 (k-1) n / (C + C_a (k-2) / k), and k n / C where C_a is no limit; C: the groups' edges
/// together. With k = 2 an aggregator saves nothing.
///
/// *Latency.* No result is complete before the slowest message that must be sent has arrived: between the root and the
/// rank that is farthest from it, or between the two ranks that are farthest apart. The latency between two ranks is
/// that of the outermost level that tells them apart.
///
/// *Rounds.* A rank with overhead o per message starts at most k = ceil(L / o) of them in one latency L, so the number
/// of informed ranks grows at most by a factor of k + 1 per latency: ceil(log_{k+1} p) L. Unless `messages_only`, the
/// ranks of a node count as one member, and k is multiplied by their number. L and o are the smallest between members.
/// An in-network multicast reaches all ranks at once. With `messages_only` also the lower bound of the postal model on
/// nodes and groups (spread_of_job.hpp): from the root with the senders' gaps (bcast, scatter), to it with the
/// receivers' (gather, reduce), or the larger of both.
///
/// *One port.* Beside the limits, for comparison: the same latency and the fastest member's edge, where a message
/// occupies both of its ends for latency and bytes. An allreduce or scan is at least a reduce.
///
/// *Memory.* A rank copies its own block to the result (gather, scatter, allgather, alltoall; without MPI_IN_PLACE);
/// reducing p vectors of n bytes produces (p-1) n bytes of results, at best distributed evenly over p ranks. Intra-node
/// transfers count as free.
///
/// Where no bytes move the bound is 0, except for a barrier: no rank depends on another.
///
/// Unknown capacities, latencies and memory rates give no bound.
///
/// `block_bytes`: one entry, of the meaning of Request::block_bytes, or one for each rank (gather, scatter, allgather,
/// reduce_scatter) or for each pair, sender * p + receiver (alltoall). A barrier takes any one entry. Throws
/// base::Error on a list of another length, on a root outside of the job where the root matters, and on options that
/// name no level or no positive number. Time: O(ranks + groups).
BoundTerms bound_terms(const topology::Job& job, const plan::Request& request,
                       const std::vector<std::int64_t>& block_bytes, const BoundOptions& options = {});

/// All edges of one level of the job, by group. Same errors; `level` is an index into job.levels().
std::vector<EdgeTerm> bound_edges(const topology::Job& job, const plan::Request& request,
                                  const std::vector<std::int64_t>& block_bytes, std::size_t level,
                                  const BoundOptions& options = {});

/// bound_terms(...).limit.
Bound bound(const topology::Job& job, const plan::Request& request, const std::vector<std::int64_t>& block_bytes);

}  // namespace palmette::model
