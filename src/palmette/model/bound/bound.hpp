// The physical limit of a collective on a job's tree: no plan and no library can be faster.
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
    /// link: the edge of one group; links: the edges of all groups of a level together; latency: a message's way;
    /// rounds: messages that wait for each other; copy, reduce: what a rank does in its own memory; none: nothing is
    /// known
    std::string kind = "none";
    std::string level;
    std::int32_t group = -1;  ///< for link
    std::string group_name;   ///< for link, where names are known
    bool outwards = false;    ///< for link: bytes that leave the group, else bytes that enter
    std::int64_t bytes = 0;   ///< that have to cross, or to be copied or reduced
    double capacity_bytes_per_s = 0;
};

/// For how long the two ends of a message are busy with it.
struct MessageEnds {
    Gaps send, receive;
};

/// What the job's tree doesn't say.
struct BoundOptions {
    /// By name of a level: the number of ports that every group's edge consists of. Ranks are bound to ports one after
    /// the other and carry even shares, so that L ranks on k ports use L / (k ceil(L / k)) of the capacity.
    std::vector<std::pair<std::string, std::int32_t>> ports;
    /// Messages that a rank can have under way at once. 0: as many as it can start in one latency where overheads are
    /// known, else any number.
    std::int32_t at_once = 0;
    /// Ranks of a node hear of each other by messages only, as if each had a node of its own. Otherwise any number of
    /// them can read one memory.
    bool messages_only = false;
    /// With `messages_only`: the ends of a message; without, each is busy for the overhead of what it crosses.
    std::optional<MessageEnds> ends = {};
};

/// The edge of one group.
struct EdgeTerm {
    std::int32_t group = -1;
    std::string name;  ///< where names are known
    Traffic traffic;
    double capacity_bytes_per_s = 0;  ///< 0: unknown
    double seconds = 0;               ///< of the direction that takes longer
    bool outwards = false;            ///< which that is
};

/// One level: its slowest edge, and all edges together.
struct LevelTerms {
    std::string level;
    std::int32_t groups = 0;
    std::int32_t unknown = 0;  ///< edges without a capacity
    EdgeTerm worst;            ///< group -1 where no capacity is known
    /// Bytes that leave groups, each way, without reduction or multicast in the network.
    double together_bytes = 0;        ///< no integer: all to all of a million ranks is more than fits
    double together_bytes_per_s = 0;  ///< 0 where a capacity is unknown
    double together_s = 0;
    double latency_s = 0;  ///< 0: unknown
    bool crossed = false;  ///< somebody must hear of somebody else across this level
};

/// Messages that wait for each other until everybody has heard: rounds times the smallest latency, or what the postal
/// model gives.
struct RoundsTerm {
    std::int64_t members = 0;  ///< nodes, or ranks where they have messages only
    std::int64_t at_once = 0;  ///< messages of one member; 0: any number, so nothing is bounded
    std::int32_t rounds = 0;
    double latency_s = 0;
    double spread_s = 0;  ///< with messages only: by the postal model; 0: nothing follows
    double seconds = 0;   ///< the larger of the two
};

/// What some rank must at least do in its own memory.
struct MemoryTerm {
    std::int64_t bytes = 0;
    double bytes_per_s = 0;  ///< 0: unknown
    double seconds = 0;
};

/// Everything that bounds a collective, and the limits that follow.
struct BoundTerms {
    std::vector<LevelTerms> levels;  ///< outermost first
    RoundsTerm rounds;
    MemoryTerm copy;
    MemoryTerm reduce;
    Bound limit;             ///< switches store and forward
    Bound limit_in_network;  ///< switches also reduce and multicast
};

/// Lower bounds on the time of `request`.
///
/// *One edge.* What must cross the edge that cuts a group of s of p ranks off (crossing.hpp), over its capacity in that
/// direction.
///
/// *All edges of a level.* Without reduction and multicast in the network a message leaves one group and enters one
/// other. To bring one element's sum of k groups to all k of them takes 2 (k-1) such messages (one-way gossip), so an
/// allreduce of n bytes needs 2 (k-1) n / (sum of capacities). The like holds with (k-1) p m for allgather and
/// reduce_scatter and with (k-1) n for bcast and reduce, but there the slowest edge is never the weaker bound. Of the
/// others, what leaves groups is added up.
///
/// *Latency.* No result is complete before the slowest message that must be sent has arrived: between the root and the
/// rank that is farthest from it, or between the two ranks that are farthest apart. The latency between two ranks is
/// that of the outermost level that tells them apart.
///
/// *Rounds.* A rank that is busy o with each message starts at most k = ceil(L / o) of them in one latency L, so those
/// who have heard of a rank become at most k + 1 times as many in each: ceil(log_{k+1} p) L. Ranks of a node count as
/// one member with so many times k, unless `messages_only`. L and o are the smallest between members. A multicast in
/// the network reaches everybody at once. With `messages_only` also the least time of the postal model on nodes and
/// groups (spread_of_job.hpp): from the root with the senders' gaps (bcast, scatter), to it with the receivers'
/// (gather, reduce), or the larger of both.
///
/// *Memory.* A rank copies its own block to the result (gather, scatter, allgather, alltoall; without MPI_IN_PLACE); p
/// vectors of n bytes take (p-1) n bytes of results to combine, which p ranks can share at best. What reaches a rank
/// from others of its node is taken as free.
///
/// Where no bytes move the bound is 0, but for a barrier: nobody need hear of anybody.
///
/// Edges without a capacity, levels without latency and memory without rates bound nothing.
///
/// `block_bytes`: one entry, of the meaning of Request::block_bytes, or one for each rank (gather, scatter, allgather,
/// reduce_scatter) or for each pair, sender * p + receiver (alltoall). A barrier takes any one entry. Throws
/// base::Error on a list of another length, on a root outside of the job where the root matters, and on options that
/// name no level or no positive number. Time: ranks and groups.
BoundTerms bound_terms(const topology::Job& job, const plan::Request& request,
                       const std::vector<std::int64_t>& block_bytes, const BoundOptions& options = {});

/// All edges of one level of the job, by group. Same errors; `level` is an index into job.levels().
std::vector<EdgeTerm> bound_edges(const topology::Job& job, const plan::Request& request,
                                  const std::vector<std::int64_t>& block_bytes, std::size_t level,
                                  const BoundOptions& options = {});

/// bound_terms(...).limit.
Bound bound(const topology::Job& job, const plan::Request& request, const std::vector<std::int64_t>& block_bytes);

}  // namespace palmette::model
