// Link state of a flow simulation: messages that share links, when rates are recomputed, and the load of every link
// over time.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/model/flow/flow.hpp"
#include "palmette/model/flow/flow_bins.hpp"
#include "palmette/model/flow/flow_bundles.hpp"
#include "palmette/model/flow/flow_routes.hpp"

namespace palmette::model {

/// Times that differ by rounding only count as equal.
inline constexpr double flow_same_time = 1e-12;

/// Rates are recomputed after each change or, with a tolerance, after that share of the duration of a completed
/// message.
class FlowNetwork {
  public:
    /// `messages`: number in the plan, which sets the tolerance where the options leave it open. `shortest_bin_s`:
    /// initial interval of the load record.
    FlowNetwork(const topology::Job& job, const FlowOptions& options, std::int64_t messages, double shortest_bin_s);

    FlowRoutes& routes() { return routes_; }
    const FlowRoutes& routes() const { return routes_; }

    void start(BundleId bundle, FlowBundles::Flow flow, double bytes, double now);
    /// A message of the bundle has completed: the capacity that it frees goes to others.
    void follow_end(BundleId bundle, double bytes, double now);
    /// When the next message completes; infinite where none is in flight.
    double next() const { return flows_.next(); }
    /// When rates have to be recomputed; infinite where nothing has changed.
    double settle_by() const { return settle_by_; }
    void finish(double now, std::vector<FlowBundles::EndedFlow>& completed) { flows_.finish(now, completed); }
    /// Recomputes rates at settle_by(), or at `now` where that is past. Returns the time.
    double settle(double now);

    /// Accounts a message of the plan (not of the background) on the links of its route.
    void count_own(BundleId bundle, std::int64_t bytes) {
        for (const LinkId link : routes_.links_of(bundle)) own_bytes_[link] += bytes;
    }
    /// End of the simulation: writes links, bins and tolerance of the result.
    void conclude(double now, FlowResult& out);

  private:
    void raise_tolerance();

    const FlowOptions& options_;
    double tolerance_;
    FairSharing sharing_;
    FlowRoutes routes_;
    FlowBundles flows_;
    FlowBins bins_;
    std::vector<std::int64_t> own_bytes_;
    std::vector<BundleId> ended_;  ///< since rates were last computed
    double settle_by_ = FairSharing::unlimited;
    std::uint64_t work_between_, raise_tolerance_at_, settled_ = 0;
};

}  // namespace palmette::model
