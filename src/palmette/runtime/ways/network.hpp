// Contributions that aggregators in the network combine (network/aggregation.hpp).
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "palmette/runtime/network/aggregation.hpp"
#include "palmette/runtime/state/communicator.hpp"
#include "palmette/runtime/ways/way.hpp"

namespace palmette::runtime {

/// A communicator's, by level of the groups.
class Aggregations : public KeptState {
  public:
    /// Collective. That of a plan for the network, and whether it serves; if not: Aggregation::why.
    std::pair<Aggregation*, bool> find(Communicator& state, const CachedPlan& plan, const Settings& settings);
    void leave() override {
        for (const auto& one : all_) one->leave();
    }

  private:
    std::vector<std::unique_ptr<Aggregation>> all_;
};

/// Where some rank has no result of theirs, all ranks repeat the call by hosts.
class InNetwork : public Way {
  public:
    /// `aggregation` is the communicator's and outlives its plans; `by_hosts`: the same plan without aggregators.
    InNetwork(Aggregation& aggregation, execute::BoundProgram by_hosts)
        : aggregation_(aggregation), by_hosts_(std::move(by_hosts)) {}
    int run(Work& call, MpiExecutor& executor) override;
    OnDevices on_devices() const override { return {}; }
    bool is_in_network() const override { return true; }

  private:
    int run_kept(Work& call, MpiExecutor& executor, const execute::Environment& environment);

    Aggregation& aggregation_;
    execute::BoundProgram by_hosts_;
};

}  // namespace palmette::runtime
