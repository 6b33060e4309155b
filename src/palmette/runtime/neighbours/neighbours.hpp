// Neighbourhood collectives on one communicator: its edges, agreed and exchanged once, and the plans made from them.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "palmette/collectives/neighbours/neighbour_program.hpp"
#include "palmette/runtime/data/caller_buffer.hpp"
#include "palmette/runtime/state/communicator.hpp"

namespace palmette::runtime {

/// See docs/decisions/0026-neighbourhoods.md.
class NeighbourPlans : public KeptState {
  public:
    /// Collective, at the first call. `comm`: the program's, whose state this is.
    NeighbourPlans(Communicator& state, MPI_Comm comm);
    /// With these edges instead of the communicator's: for studies on simulators without graphs.
    NeighbourPlans(Communicator& state, MPI_Comm comm, collectives::Neighbours given);

    /// Why all calls are the MPI's, the same on all ranks.
    std::optional<Refusal> refusal() const { return refusal_; }
    const std::string& detail() const { return detail_; }
    /// Why a function's calls are the MPI's, the same on all ranks.
    std::optional<std::string> why_left(select::Function function) const;

    int sources() const { return static_cast<int>(own_.sources.size()); }
    int targets() const { return static_cast<int>(own_.targets.size()); }

    /// Blocks of the sending side.
    int sent_blocks(select::Function function) const { return gathers(function) ? std::min(targets(), 1) : targets(); }
    bool has_target(select::Function function, int block) const {
        return gathers(function) || own_.targets[static_cast<std::size_t>(block)] >= 0;
    }
    /// Whether a block comes from a rank, and not from beyond the edge of a grid.
    bool has_source(int block) const { return own_.sources[static_cast<std::size_t>(block)] >= 0; }

    /// For a call with blocks of so many bytes, or, where lengths differ, with a slot of so many; -1: without. Local.
    /// Valid until the next call of this, and while it has users.
    CachedPlan& plan_for(select::Function function, std::int64_t block_bytes, bool blocking);

    /// Where lengths differ: the direct program for blocks of more than `slot` bytes of a call, whose buffers are
    /// prepared.
    execute::BoundProgram bound_to(select::Function function, const CallerBuffer& send, const CallerBuffer& recv,
                                   std::int64_t slot = 0);
    /// Where lengths differ: the slot for a blocking call that isn't left to the MPI (why_left), -1: none. Counts the
    /// call; collective at some. `send` null: a call with erroneous arguments.
    std::int64_t slot_for(select::Function function, const CallerBuffer* send);

  private:
    void make(MPI_Comm comm, const std::function<bool()>& read);
    bool agree_with_all(bool readable, const Settings& settings);
    bool exchange_in_group();
    /// Whether combining saves enough messages between nodes: agreed. False where the MPI fails.
    bool count_messages();
    void fill(CachedPlan& plan);
    /// Not combined: of ranks that relay nothing.
    const plan::Program& program(select::Function function, bool combined);
    struct Rule {
        bool forced = false;
        std::int64_t up_to = -1;  ///< bytes: longer blocks aren't combined; -1: none are
    };
    static bool gathers(select::Function function) {
        return function == select::Function::neighbor_allgather || function == select::Function::neighbor_allgatherv;
    }
    collectives::NeighbourBlocks blocks_for(select::Function function) const {
        return {!gathers(function), state_.size(), parallel_};
    }
    /// All ranks agree on it now and then, as long as calls come.
    struct Slot {
        std::int64_t calls = 0, bytes = -1;
    };

    Communicator& state_;
    collectives::Neighbours own_;
    std::vector<int> without_source_;  ///< blocks from beyond the edge of a grid
    std::int32_t parallel_ = 1;
    bool any_isolated_ = false;  ///< ranks without neighbours
    std::map<select::Function, Rule> rules_;
    std::optional<plan::Program> programs_[2][2];  ///< alltoall's and allgather's, direct and combined
    collectives::NeighbourRoute combined_;
    std::optional<collectives::Neighbourhood> known_;
    std::map<select::Function, Slot> slots_;
    std::optional<Refusal> refusal_;
    std::string detail_, why_not_;
    using PlanOf = std::tuple<select::Function, std::int64_t, bool>;  ///< bytes of a block; blocking
    std::map<PlanOf, std::unique_ptr<CachedPlan>> plans_;
    PlanOf last_victim_{};
};

/// The neighbourhood plans of a communicator, made at the first call. Collective where there are none yet.
inline NeighbourPlans& neighbours_of(Communicator& state, MPI_Comm comm) {
    NeighbourPlans* const made = state.kept().find<NeighbourPlans>();
    return made ? *made : state.kept().add(std::make_unique<NeighbourPlans>(state, comm));
}

}  // namespace palmette::runtime
