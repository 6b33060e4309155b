// Blocking calls whose buffers lie on devices on all ranks, by NCCL's collectives.
#pragma once

#include <chrono>
#include <optional>

#include "palmette/runtime/nccl/nccl_ranks.hpp"
#include "palmette/runtime/state/communicator.hpp"
#include "palmette/runtime/ways/way.hpp"

namespace palmette::runtime {

/// The ranks agree at each call whose blocks are long enough whether all of them can.
class ByNccl final : public KeptState, public EarlyWay {
  public:
    ByNccl(Communicator& state, std::chrono::seconds limit)
        : state_(state), ranks_(state.shadow_comm(), state.rank(), state.size(), 1, limit) {}

    /// Whether NCCL has such a function.
    static bool has(select::Function function);
    /// Whether this rank can take part on a communicator that doesn't use it yet.
    static bool is_offered(Communicator& state, const Settings& settings);
    /// All ranks have offered it.
    static void begin(Communicator& state, const Settings& settings);

    bool looks_at(select::Function function) const override { return ranks_.in_service() && has(function); }
    std::optional<int> serve(const CallArguments& arguments) override;

  private:
    Communicator& state_;
    NcclRanks ranks_;
};

}  // namespace palmette::runtime
