// The links of a simulation: messages that share them, when rates are shared out anew, and what every link carries over
// time.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/model/flow/flow.hpp"
#include "palmette/model/flow/flow_bins.hpp"
#include "palmette/model/flow/flow_bundles.hpp"
#include "palmette/model/flow/flow_routes.hpp"

namespace palmette::model {

/// Times that rounding alone tells apart are one.
inline constexpr double flow_same_time = 1e-12;

/// Rates are shared out anew after each change, or, with a tolerance, after as much of a message's time as is
/// tolerated.
class FlowNetwork {
  public:
    /// `messages`: of the plan, from which follows what is tolerated where the options leave that open.
    /// `shortest_bin_s`: of the record over time.
    FlowNetwork(const topology::Job& job, const FlowOptions& options, std::int64_t messages, double shortest_bin_s);

    FlowRoutes& routes() { return routes_; }
    const FlowRoutes& routes() const { return routes_; }

    void start(BundleId bundle, FlowBundles::Flow flow, double bytes, double now);
    /// A message of the bundle is through: others get what it leaves.
    void follow_end(BundleId bundle, double bytes, double now);
    /// When the next message is through; infinite where none is under way.
    double next() const { return flows_.next(); }
    /// When rates have to be shared out anew; infinite where nothing has changed.
    double settle_by() const { return settle_by_; }
    void finish(double now, std::vector<FlowBundles::Ended>& through) { flows_.finish(now, through); }
    /// Shares rates out anew, at settle_by() or at `now` where that is past. Returns the time.
    double settle(double now);

    /// A message of the plan's own takes this way.
    void count_own(BundleId bundle, std::int64_t bytes) {
        for (const LinkId link : routes_.links_of(bundle)) own_bytes_[link] += bytes;
    }
    /// The end has come: writes links, bins and tolerance of the result.
    void conclude(double now, FlowResult& out);

  private:
    void loosen();

    const FlowOptions& options_;
    double tolerance_;
    FairSharing sharing_;
    FlowRoutes routes_;
    FlowBundles flows_;
    FlowBins bins_;
    std::vector<std::int64_t> own_bytes_;
    std::vector<BundleId> ended_;  ///< since rates were shared out
    double settle_by_ = FairSharing::unlimited;
    std::uint64_t work_between_, loosen_at_, settled_ = 0;
};

}  // namespace palmette::model
