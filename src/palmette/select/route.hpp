// Who carries a collective out on a communicator, and by which algorithm: chosen from the call and from what all ranks
// know, before anything is agreed, set up or bound.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "palmette/select/table.hpp"

namespace palmette::select {

/// What a plan is made for. All of it is the same on all ranks.
struct PlanKey {
    Function function = Function::gather;
    bool blocking = true;
    bool ordered = false;  ///< the operation isn't commutative
    std::int32_t root = 0;
    std::int64_t block_bytes = 0;  ///< as in plan::Request; -1: ranks don't know each other's sizes
    std::int64_t element_bytes = 1;
    bool exact = true;   ///< results are bitwise the same whoever performs the call
    bool known = false;  ///< a predefined operation on elements that palmette knows, as aggregators need it
    friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

/// What the user forces for a function: an algorithm, or the MPI's own (none).
struct ForcedChoice {
    std::optional<Spec> algorithm;
    std::string source;  ///< PALMETTE_FORCE or palmette_force
};

/// Memory that the ranks of a node share.
struct NodeMemory {
    bool usable = false;             ///< some node has several ranks, and nothing speaks against sharing
    bool is_set_up = false;          ///< `usable` is certain on all nodes, and the following members are known
    bool single_copy = false;        ///< this node's ranks may read each other's memory
    std::int64_t pays_from = 0;      ///< bytes from which on that is faster
    bool owners_always_map = false;  ///< blocks are opened where they lie, from one byte on: IPC of a device
    std::int64_t ring_bytes = 0;     ///< capacity for each rank of the fullest node
};

/// What a choice depends on besides the call. All of it is the same on all ranks but NodeMemory's single copy. What is
/// referred to outlives the choice.
struct RouteContext {
    const Table& table;
    const Job& job;
    const Job& in_rank_order;  ///< `job` in the order of ranks, without topology and costs
    bool scattered = false;    ///< is_scattered(job)
    const ForcedChoice* forced = nullptr;
    bool reproducible = false;   ///< reductions give the same bits for any placement
    std::int64_t most_tags = 0;  ///< number of tags for a blocking call's messages
    NodeMemory node_memory = {};
    Surroundings around = {};
};

/// The result of a choice. `left` and `algorithm` are the same on all ranks.
struct Route {
    enum class LeaveReason : std::uint8_t {
        no,
        chosen,         ///< a setting, the table or the model prefers the MPI's own
        precondition,   ///< the algorithm can't serve this call: `reason` says why
        too_many_tags,  ///< `reason` is the algorithm
    };
    // First what each call looks at.
    LeaveReason left = LeaveReason::no;
    Basis basis = Basis::demand;
    bool shares = false;             ///< ranks of a node exchange through shared memory
    bool relays = false;             ///< ranks forward blocks of others
    bool aggregates = false;         ///< aggregators combine
    bool needs_node_memory = false;  ///< node memory has to be set up; then the choice is to be made again
    std::int64_t single_copy_from = INT64_MAX;
    std::int64_t tags = 0;     ///< exclusive upper bound of its messages' tags
    const Job* job = nullptr;  ///< job whose positions the program counts: one of the context's two
    plan::Request request;
    std::string reason;
    std::optional<Spec> spec;  ///< absent: nothing has to move, or the MPI's own
    std::string candidate;     ///< the algorithm as it was chosen
    std::string algorithm;     ///< the algorithm with what this job's nodes add; "none" where nothing has to move
};

/// The route of a call. Depends on its arguments alone, has no side effects but those of `around.plays`, and doesn't
/// throw for what can't be served. Cost: that of Table::choose, microseconds without and milliseconds with simulations.
Route choose_route(const PlanKey& key, const RouteContext& context);

/// Whether aggregators may serve a call of this kind.
bool may_aggregate(const PlanKey& key, const RouteContext& context);

/// Upper bound of the bytes that a rank exposes in one operation, from what all ranks know.
std::int64_t most_exposed(plan::Collective collective, std::int64_t ranks, std::int64_t bytes);

/// Sizes of a function's calls that are left to the MPI before a plan is looked up.
struct LeftSizes {
    std::int64_t from = 1, to = 0;  ///< bytes, both included
    std::string reason;
};
struct LeftFunction {
    std::optional<std::string> always;  ///< why all calls are, whatever their arguments
    bool repeats = false;          ///< alltoallv, alltoallw: chosen by size where counts repeat; until then `always`
    std::vector<LeftSizes> sizes;  ///< ascending
};
/// What settings or the table leave to the MPI. Of the context, node memory and `around`'s lists don't matter.
LeftFunction left_to_mpi(Function function, const RouteContext& context);

}  // namespace palmette::select
