// Flows in flight, grouped in bundles of equal rate: which one completes next.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "palmette/model/flow/flow_sharing.hpp"

namespace palmette::model {

/// Flows of a bundle have the same rate, so the bytes transferred per flow since the bundle started (virtual time)
/// determine all of their completion times: a rate change updates one heap entry per bundle, not one per flow.
///
/// Rates may be updated later than flows complete. Until then the capacity that they free stays unused, unless a new
/// flow of the same bundle takes it.
class FlowBundles {
  public:
    using Flow = std::uint64_t;
    struct EndedFlow {
        Flow flow;
        BundleId bundle;
    };
    explicit FlowBundles(FairSharing& sharing) : sharing_(sharing) {}

    void start(BundleId bundle, Flow flow, double bytes, double now);
    /// Applies new rates.
    void settle(double now);
    /// When the next flow completes; infinite where none is in flight.
    double next() const { return heap_.empty() ? FairSharing::unlimited : heap_.front().first; }
    /// Removes all flows completed by `now`, also from the sharing.
    void finish(double now, std::vector<EndedFlow>& completed);

  private:
    static constexpr std::uint32_t nowhere = 0xffffffff;
    struct Bundle {
        double got = 0;  ///< bytes transferred by a flow that was present from the start (virtual time)
        double at = 0;   ///< time of `got`
        double rate = 0;
        std::uint32_t place = nowhere;              ///< in heap_
        std::vector<std::pair<double, Flow>> ends;  ///< a heap: the value of `got` at which the flow completes
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
