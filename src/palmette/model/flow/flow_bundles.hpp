// Flows under way: which one is through next.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "palmette/model/flow/flow_sharing.hpp"

namespace palmette::model {

/// Flows of a bundle have the same rate, so that what each has got since the bundle began tells for all of them at once
/// how long each one still takes: a change of rate costs one entry for the bundle, not one for every flow.
///
/// Rates may be taken over later than flows go. Until then nobody gets what they leave, and a flow of the same bundle
/// that comes takes it.
class FlowBundles {
  public:
    using Flow = std::uint64_t;
    struct Ended {
        Flow flow;
        BundleId bundle;
    };
    explicit FlowBundles(FairSharing& sharing) : sharing_(sharing) {}

    void start(BundleId bundle, Flow flow, double bytes, double now);
    /// Takes over new rates.
    void settle(double now);
    /// When the next flow is through; infinite where none is under way.
    double next() const { return heap_.empty() ? FairSharing::unlimited : heap_.front().first; }
    /// Takes out all flows that are through by `now`, and says so to the sharing.
    void finish(double now, std::vector<Ended>& through);

  private:
    static constexpr std::uint32_t nowhere = 0xffffffff;
    struct Bundle {
        double got = 0;  ///< bytes of a flow that was there from the beginning
        double at = 0;   ///< time of `got`
        double rate = 0;
        std::uint32_t place = nowhere;              ///< in heap_
        std::vector<std::pair<double, Flow>> ends;  ///< a heap: what `got` is when the flow is through
    };

    Bundle& at(BundleId bundle);
    void advance(Bundle& bundle, double now);
    void place(BundleId id);
    void sift_up(std::uint32_t i);
    void sift_down(std::uint32_t i);
    void swap_entries(std::uint32_t a, std::uint32_t b);

    FairSharing& sharing_;
    std::vector<Bundle> bundles_;
    std::vector<std::pair<double, BundleId>> heap_;  ///< by time of the next end
};

}  // namespace palmette::model
