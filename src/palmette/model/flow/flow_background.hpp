// Background traffic of a flow simulation: generates the next message of each process.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "palmette/model/flow/flow.hpp"
#include "palmette/model/flow/flow_routes.hpp"

namespace palmette::model {

class FlowBackground {
  public:
    FlowBackground(const topology::Job& job, const FlowTraffic& traffic, FlowRoutes& routes);

    std::size_t size() const { return sources_.size(); }
    double bytes() const { return static_cast<double>(traffic_.bytes); }
    /// The bundle of a process's next message, or nothing where no link leads to any other process.
    std::optional<BundleId> next(std::size_t source);
    /// Positions with which the processes are co-located.
    const std::vector<std::int32_t>& positions() const { return positions_; }

  private:
    struct Source {
        std::uint64_t turn = 0;
    };
    FlowTraffic traffic_;
    FlowRoutes& routes_;
    std::vector<std::int32_t> positions_;
    std::vector<Source> sources_;
};

}  // namespace palmette::model
