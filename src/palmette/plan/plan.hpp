// A plan: the programs of all ranks for one collective, as the verifier, the counters and the drawings use it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "palmette/base/json.hpp"
#include "palmette/plan/contract.hpp"
#include "palmette/plan/program.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::plan {

using topology::Job;

/// The collective that a plan is made for. The same on all ranks.
struct Request {
    Collective collective = Collective::gather;
    Rank root{0};  ///< root of gather, scatter, bcast and reduce
    /// What one rank contributes (gather, allgather), gets (scatter, reduce_scatter) or sends to each other rank
    /// (alltoall); the whole vector of bcast, reduce, allreduce, scan and exscan. -1 where ranks don't know each
    /// other's sizes (gatherv, scatterv, alltoallv, alltoallw).
    std::int64_t block_bytes = -1;
    std::int64_t element_bytes = 1;  ///< a reduction's element size: cuts lie at element boundaries
    bool ordered = false;        ///< the operation isn't commutative: contributions are combined in the order of ranks
    bool shared_memory = false;  ///< ranks of a node may use expose and pull
};

/// Tools only: at run time each rank generates its own program alone.
struct Plan {
    Request request;
    std::string algorithm;                       ///< as in docs/reference/algorithm-spec.md
    std::vector<Program> programs;               ///< by rank, then by service position
    std::shared_ptr<const Contract> contract{};  ///< specification of Collective::composed
};

/// The block that belongs to a rank, in the program's block order.
inline std::int64_t block_of(const Job& job, BlockOrder order, Rank rank) {
    return order == BlockOrder::topology ? job.position_of(rank).value : rank.value;
}
inline Rank owner_of(const Job& job, BlockOrder order, std::int64_t block) {
    const auto index = static_cast<std::int32_t>(block);
    return order == BlockOrder::topology ? job.rank_at({index}) : Rank{index};
}

/// Where block `block` of a vector of `bytes` bytes begins that is cut in `cut` even blocks, and how long it is.
inline std::int64_t cut_begin(std::int64_t bytes, std::int64_t cut, std::int64_t element_bytes, std::int64_t block) {
    const std::int64_t elements = bytes / element_bytes;
    return (elements / cut * block + elements % cut * block / cut) * element_bytes;
}
inline std::int64_t cut_length(std::int64_t bytes, std::int64_t cut, std::int64_t element_bytes, std::int64_t block) {
    return cut_begin(bytes, cut, element_bytes, block + 1) - cut_begin(bytes, cut, element_bytes, block);
}

/// One program, or the whole plan, as JSON (format "palmette-plan", version 2).
base::Json to_json(const Program& program);
base::Json to_json(const Plan& plan, const Job& job);

/// One program in lines such as "3 send to 5 tag 0: recv[0..4) after 1,2".
std::string to_text(const Program& program);

/// One message or pull of a plan, for listings and drawings. `time` is its depth: the length of the longest chain of
/// messages that it depends on.
struct Message {
    Rank from, to;
    std::int32_t tag = 0;
    std::int32_t time = 0;
    std::string stage;
    Blocks blocks;
    Slice slice;
    bool pulled = false;  ///< read in the node's memory
};

/// All messages by time, then sender, then receiver. The plan must have passed the verifier.
std::vector<Message> messages_of(const Plan& plan);

}  // namespace palmette::plan
