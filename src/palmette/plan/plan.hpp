// All programs of one collective together: what the verifier, the counters and the drawings look at.
#pragma once

#include <string>
#include <vector>

#include "palmette/base/json.hpp"
#include "palmette/plan/program.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::plan {

using topology::Job;

/// What is asked for. `root` matters to gather and scatter only. `block_bytes` is what one rank contributes (gather,
/// allgather) or gets (scatter); -1 where ranks don't know each other's sizes (gatherv, scatterv).
struct Request {
    Collective collective = Collective::gather;
    Rank root{0};
    std::int64_t block_bytes = -1;
};

/// Tools only: a rank at run time makes its own program and nobody else's.
struct Plan {
    Request request;
    std::string algorithm;          ///< as in docs/reference/algorithm-spec.md
    std::vector<Program> programs;  ///< by rank
};

/// The block that belongs to a rank, in the order that a program counts in.
inline std::int64_t block_of(const Job& job, BlockOrder order, Rank rank) {
    return order == BlockOrder::topology ? job.position_of(rank).value : rank.value;
}
inline Rank owner_of(const Job& job, BlockOrder order, std::int64_t block) {
    const auto index = static_cast<std::int32_t>(block);
    return order == BlockOrder::topology ? job.rank_at({index}) : Rank{index};
}

/// One program, or the whole plan, as JSON (format "palmette-plan", version 1).
base::Json to_json(const Program& program);
base::Json to_json(const Plan& plan, const Job& job);

/// One program in lines such as "3 send to 5 tag 0: recv[0..4) after 1,2".
std::string to_text(const Program& program);

/// One message of a plan, for listings and drawings. `time` is the length of the longest chain of messages that it waits for.
struct Message {
    Rank from, to;
    std::int32_t tag = 0;
    std::int32_t time = 0;
    std::string stage;
    Blocks blocks;
    Slice slice;
};

/// All messages by time, then sender, then receiver. The plan must have passed the verifier.
std::vector<Message> messages_of(const Plan& plan);

}  // namespace palmette::plan
