// Neighbourhood collectives by plans (neighbours/neighbours.hpp).
#pragma once

#include <vector>

#include "palmette/runtime/neighbours/neighbours.hpp"
#include "palmette/runtime/ways/way.hpp"

namespace palmette::runtime {

/// To each neighbour its blocks, directly or combined with those of others.
class ToNeighbours : public Way {
  public:
    /// `plans` is the communicator's and outlives its plans.
    explicit ToNeighbours(NeighbourPlans& plans) : plans_(plans) {}
    int bind(Work& call) override;
    OnDevices on_devices() const override { return {.overlaps = true}; }

  protected:
    NeighbourPlans& plans_;
};

/// Blocks of differing lengths up to a slot combined, padded to it, so that counts need not be exchanged; then longer
/// ones directly. For blocking calls.
class PaddedToNeighbours : public ToNeighbours {
  public:
    PaddedToNeighbours(NeighbourPlans& plans, std::int64_t slot) : ToNeighbours(plans), slot_(slot) {}
    int run(Work& call, MpiExecutor& executor) override;
    OnDevices on_devices() const override { return {}; }

  private:
    std::int64_t slot_;
    std::vector<char*> named_;
};

}  // namespace palmette::runtime
