// Routes of messages on a job's tree: the links they cross.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "palmette/model/flow/flow_sharing.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::model {

/// One direction of the edge of one group, or with the level behind all levels of an aggregator's link.
struct LinkPlace {
    std::int32_t level = 0, group = 0;
    bool outwards = false;
};

/// The route between two positions.
struct Route {
    bool shares = false;  ///< crosses links, so that `bundle` has its rate
    BundleId bundle = 0;
    double cap = 0;  ///< rate limit of the flow, where it crosses no link
};

/// Every edge of known capacity is two links, one per direction; behind all others the memory of each node is one,
/// which the copies of its messages share, where their rate together is known. Bundles are created lazily, with their
/// first message.
class FlowRoutes {
  public:
    /// Edge capacities are reduced by the load of other traffic (JobLevel::load). Both must outlive this.
    FlowRoutes(const topology::Job& job, FairSharing& sharing);

    Route between(std::int32_t from, std::int32_t to) { return find(from, to, 0, FairSharing::unlimited); }
    /// Route of background traffic: in bundles of its own, limited to `cap` per flow.
    Route background(std::int32_t from, std::int32_t to, double cap) { return find(from, to, 1, cap); }

    /// Costs of messages that part at a level, or nowhere.
    const topology::LevelCosts& costs(std::size_t level) const {
        return level < job_.levels().size() ? job_.levels()[level].costs : job_.inside();
    }
    /// Places of all links but memories.
    const std::vector<LinkPlace>& places() const { return places_; }
    const std::vector<LinkId>& links_of(BundleId bundle) const { return links_of_[bundle]; }

  private:
    Route find(std::int32_t from, std::int32_t to, std::uint64_t kind, double cap);
    /// What determines the route of a position.
    std::uint64_t place(std::int32_t position) const;
    /// The link out of a position's group, or of the service position itself; the one in is next.
    LinkId leaving(std::size_t level, std::int32_t position) const;
    LinkId leaving_aggregator(std::int32_t position) const;

    const topology::Job& job_;
    FairSharing& sharing_;
    std::vector<LinkPlace> places_;
    std::vector<std::vector<LinkId>>
        out_;  ///< by level and group: the link out, the one in is next; none where the capacity is unknown
    std::vector<LinkId> out_of_aggregator_;
    std::vector<LinkId> memories_;  ///< by node; empty where their rate is unknown
    std::size_t node_level_;
    std::size_t innermost_ = 0;  ///< levels with links, counted from outside up to the last that has any
    std::unordered_map<std::uint64_t, BundleId> bundles_;
    std::vector<std::vector<LinkId>> links_of_;
};

}  // namespace palmette::model
