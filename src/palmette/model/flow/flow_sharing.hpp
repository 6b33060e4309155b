// Max-min fair rates of flows over shared links, kept up to date as flows come and go.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace palmette::model {

using LinkId = std::uint32_t;
using BundleId = std::uint32_t;

/// Progressive filling (Bertsekas and Gallager, Data Networks, 6.5.2): all rates grow alike until a link is full; the
/// flows over it keep what they have, and the others go on. Flows with the same links and the same cap are one bundle,
/// because their rates are the same.
///
/// A change is settled where it matters only: bundles that changed are filled anew into what the others leave; a link
/// where the result isn't fair to those others takes them in, until it is fair everywhere. Each bundle then has a link
/// that is full and on which nobody is faster (or runs at its cap), which is what makes rates max-min fair, and unique.
class FairSharing {
  public:
    static constexpr double unlimited = std::numeric_limits<double>::infinity();
    /// Sums of rates are as exact as rounding allows, no more.
    static constexpr double exact = 1e-9;

    /// `tolerance`: a link that is full but for such a share, or where somebody is faster than another by such a share,
    /// counts as fair. Above `exact`, changes die out after a few links; no link ever carries more than its capacity.
    explicit FairSharing(double tolerance = exact) : slack_(tolerance) {}
    /// From the next settle() on.
    void set_tolerance(double tolerance) { slack_ = tolerance; }

    LinkId add_link(double capacity);
    /// `links`: each once. At least one link, or a cap below unlimited.
    BundleId add_bundle(const std::vector<LinkId>& links, double cap = unlimited);
    /// So many flows more in a bundle, or fewer. Rates are stale until settle().
    void change(BundleId bundle, std::int32_t flows);
    /// Bundles whose rate or number of flows changed since the last call, in no order that means something, but in the
    /// same for the same history. Valid until the next call.
    const std::vector<BundleId>& settle();

    /// Of each flow of a bundle.
    double rate(BundleId bundle) const { return bundles_[bundle].rate; }
    std::int32_t flows(BundleId bundle) const { return bundles_[bundle].flows; }
    /// What a flow of the bundle would have if all present flows over each of its links had as much: it has at least
    /// that once settled.
    double even_share(BundleId bundle) const;
    /// Of all flows over a link together.
    double load(LinkId link) const { return links_[link].load; }
    double capacity(LinkId link) const { return links_[link].capacity; }
    std::size_t link_count() const { return links_.size(); }
    /// Links whose load the last settle() may have changed.
    const std::vector<LinkId>& touched() const { return touched_; }
    /// Bundles filled so far: a measure of the work done.
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
        double load = 0;           ///< while settling: of bundles that aren't free
        double level = 0;          ///< highest rate of the bundles whose bottleneck this is
        double lowest = 0;         ///< and the lowest: no more than the tolerance below
        double left = 0;           ///< for free bundles
        double takers = 0;         ///< flows of free bundles without a rate yet: a whole number
        double highest = 0;        ///< rate of a free bundle
        double froze = unlimited;  ///< rate of the free bundles that found this link full
        std::int32_t held = 0;     ///< bundles whose bottleneck this is
        std::int32_t flows = 0;    ///< over it now, settled or not
        bool touched = false, open = false;
    };

    bool is_loose() const { return slack_ > exact; }
    /// What each free bundle without a rate may have of a link.
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
    std::vector<std::uint8_t> waits_;    ///< by bundle, while filling: whether it is free and has no rate yet
    std::vector<LinkId> routes_;         ///< of all bundles, one after the other
    std::vector<std::uint32_t> places_;  ///< where the bundle stands in the list of that link
    std::vector<double> caps_;           ///< distinct
    std::vector<std::uint32_t> caps_ascending_;
    std::vector<std::vector<BundleId>> at_cap_;  ///< free bundles by cap, while filling
    std::vector<BundleId> dirty_, free_, changed_;
    std::vector<LinkId> touched_, open_;
    std::vector<std::pair<double, LinkId>> heap_;
    std::uint64_t work_ = 0;
    double slack_;
};

}  // namespace palmette::model
