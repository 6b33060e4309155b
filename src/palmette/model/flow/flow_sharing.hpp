// Incremental max-min fairness: rates of flows over shared links, updated as flows start and complete.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace palmette::model {

using LinkId = std::uint32_t;
using BundleId = std::uint32_t;

/// Progressive filling (water-filling; Bertsekas and Gallager, Data Networks, 6.5.2): all rates grow equally until a
/// link saturates; the flows over it are frozen, the others keep growing. Flows with the same links and the same rate
/// cap have the same rate and form one bundle.
///
/// Changes are applied incrementally: changed bundles are refilled into the residual capacity; at each link where the
/// result is unfair to other bundles, these are refilled as well, until all links are fair. Then each bundle has a
/// bottleneck: a saturated link on which no bundle is faster (or it runs at its cap). That is the criterion of max-min
/// fairness, and makes the rates unique.
class FairSharing {
  public:
    static constexpr double unlimited = std::numeric_limits<double>::infinity();
    /// Relative tolerance of an exact solution: the rounding error of sums of rates.
    static constexpr double exact = 1e-9;

    /// `tolerance`: a link that is saturated up to such a share, or on which rates differ by at most such a share,
    /// counts as fair. Above `exact`, changes propagate over a few links only; no link ever exceeds its capacity.
    explicit FairSharing(double tolerance = exact) : slack_(tolerance) {}
    /// Takes effect with the next settle().
    void set_tolerance(double tolerance) { slack_ = tolerance; }

    LinkId add_link(double capacity);
    /// `links`: each once. At least one link, or a cap below unlimited.
    BundleId add_bundle(const std::vector<LinkId>& links, double cap = unlimited);
    /// Adds flows to a bundle, or removes them where negative. Rates are stale until settle().
    void change(BundleId bundle, std::int32_t flows);
    /// Recomputes rates. Returns the bundles whose rate or number of flows changed since the last call, in an
    /// unspecified but deterministic order. Valid until the next call.
    const std::vector<BundleId>& settle();

    /// Rate of each flow of a bundle.
    double rate(BundleId bundle) const { return bundles_[bundle].rate; }
    std::int32_t flows(BundleId bundle) const { return bundles_[bundle].flows; }
    /// Equal share of the most contended link of the bundle: a lower bound on the rate of its flows after settle().
    double even_share(BundleId bundle) const;
    /// Total rate of all flows over a link.
    double load(LinkId link) const { return links_[link].load; }
    double capacity(LinkId link) const { return links_[link].capacity; }
    std::size_t link_count() const { return links_.size(); }
    /// Links whose load may have changed in the last settle().
    const std::vector<LinkId>& touched() const { return touched_; }
    /// Bundles refilled so far: a measure of the work done.
    std::uint64_t work() const { return work_; }

  private:
    static constexpr LinkId none = std::numeric_limits<LinkId>::max();
    struct Bundle {
        std::uint32_t first = 0, count = 0;  ///< into routes_ and places_
        std::uint32_t cap = 0;               ///< into caps_
        std::int32_t flows = 0, settled_flows = 0;
        double rate = 0;
        LinkId bottleneck = none;  ///< none: at its cap, or without flows
        bool dirty = false, free = false;
    };
    struct Link {
        double capacity = 0;
        double load = 0;                 ///< while settling: of bundles that aren't free
        double level = 0;                ///< highest rate of the bundles whose bottleneck this is
        double lowest = 0;               ///< and the lowest: by no more than the tolerance below
        double left = 0;                 ///< residual capacity for free bundles
        double unfrozen_flows = 0;       ///< flows of free bundles that aren't frozen yet: a whole number
        double highest = 0;              ///< rate of a free bundle
        double frozen_rate = unlimited;  ///< rate of the free bundles that were frozen at this link
        std::int32_t held = 0;           ///< bundles whose bottleneck this is
        std::int32_t flows = 0;          ///< current number over it, settled or not
        bool touched = false, open = false;
    };

    bool is_loose() const { return slack_ > exact; }
    /// Equal share of a link for each flow that isn't frozen yet.
    double share_of(const Link& link) const;
    void set_free(BundleId bundle);
    void touch(LinkId link);
    void fill();
    void freeze(BundleId bundle, double rate, LinkId bottleneck);
    bool is_unfair(LinkId link) const;
    void open(LinkId link);
    void commit();
    void enlist(BundleId bundle);
    void delist(BundleId bundle);

    std::vector<Link> links_;
    std::vector<std::vector<BundleId>> on_;  ///< by link: bundles with flows
    std::vector<Bundle> bundles_;
    std::vector<std::uint8_t> unfrozen_;  ///< by bundle, while filling: whether it is free and not frozen yet
    std::vector<LinkId> routes_;          ///< links of all bundles, one bundle after the other
    std::vector<std::uint32_t> places_;   ///< index of the bundle in the corresponding link's list
    std::vector<double> caps_;            ///< distinct
    std::vector<std::uint32_t> caps_ascending_;
    std::vector<std::vector<BundleId>> at_cap_;  ///< free bundles by cap, while filling
    std::vector<BundleId> dirty_, free_, changed_;
    std::vector<LinkId> touched_, open_;
    std::vector<std::pair<double, LinkId>> heap_;
    std::uint64_t work_ = 0;
    double slack_;
};

}  // namespace palmette::model
