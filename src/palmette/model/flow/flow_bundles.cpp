#include "palmette/model/flow/flow_bundles.hpp"

#include <algorithm>
#include <functional>

namespace palmette::model {
namespace {

/// Completion times that differ by rounding only count as equal.
constexpr double same_time = 1e-12;

}  // namespace

FlowBundles::Bundle& FlowBundles::at(BundleId bundle) {
    if (bundle >= bundles_.size()) bundles_.resize(bundle + 1);
    return bundles_[bundle];
}

void FlowBundles::advance(Bundle& bundle, double now) {
    bundle.got += bundle.rate * (now - bundle.at);
    bundle.at = now;
}

void FlowBundles::start(BundleId id, Flow flow, double bytes, double now) {
    Bundle& bundle = at(id);
    if (bundle.ends.empty())
        bundle.got = 0, bundle.at = now, bundle.rate = sharing_.rate(id);  // restart, so that sums stay small and exact
    else
        advance(bundle, now);
    bundle.ends.emplace_back(bundle.got + bytes, flow);
    std::push_heap(bundle.ends.begin(), bundle.ends.end(), std::greater<>());
    sharing_.change(id, 1);
    place(id);  // a flow that replaces a completed one changes no rate
}

void FlowBundles::settle(double now) {
    for (const BundleId id : sharing_.settle()) {
        Bundle& bundle = at(id);
        advance(bundle, now);
        bundle.rate = sharing_.rate(id);
        place(id);
    }
}

void FlowBundles::place(BundleId id) {
    Bundle& bundle = bundles_[id];
    if (bundle.ends.empty() || bundle.rate <= 0) {
        if (bundle.place == nowhere) return;
        const std::uint32_t gap = bundle.place;
        const auto last = static_cast<std::uint32_t>(heap_.size() - 1);
        if (gap != last) swap_entries(gap, last);
        heap_.pop_back();
        bundle.place = nowhere;
        if (gap < heap_.size()) sift_up(gap), sift_down(gap);
        return;
    }
    const double end = bundle.at + std::max(0.0, bundle.ends.front().first - bundle.got) / bundle.rate;
    if (bundle.place == nowhere) {
        bundle.place = static_cast<std::uint32_t>(heap_.size());
        heap_.emplace_back(end, id);
        sift_up(bundle.place);
        return;
    }
    heap_[bundle.place].first = end;
    sift_up(bundle.place);
    sift_down(bundle.place);
}

void FlowBundles::finish(double now, std::vector<EndedFlow>& completed) {
    while (!heap_.empty() && heap_.front().first <= now * (1 + same_time)) {
        const BundleId id = heap_.front().second;
        Bundle& bundle = bundles_[id];
        advance(bundle, now);
        const double until = bundle.got + std::max(bundle.rate * now, bundle.got) * same_time;
        std::int32_t gone = 0;
        // The first one completes by definition, whatever rounding says.
        do {
            completed.push_back({bundle.ends.front().second, id});
            std::pop_heap(bundle.ends.begin(), bundle.ends.end(), std::greater<>());
            bundle.ends.pop_back();
            ++gone;
        } while (!bundle.ends.empty() && bundle.ends.front().first <= until);
        sharing_.change(id, -gone);
        place(id);
    }
}

void FlowBundles::swap_entries(std::uint32_t a, std::uint32_t b) {
    std::swap(heap_[a], heap_[b]);
    bundles_[heap_[a].second].place = a;
    bundles_[heap_[b].second].place = b;
}

void FlowBundles::sift_up(std::uint32_t i) {
    while (i > 0 && heap_[i] < heap_[(i - 1) / 2]) {
        swap_entries(i, (i - 1) / 2);
        i = (i - 1) / 2;
    }
}

void FlowBundles::sift_down(std::uint32_t i) {
    for (;;) {
        std::uint32_t least = i;
        for (std::uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap_.size(); ++child)
            if (heap_[child] < heap_[least]) least = child;
        if (least == i) return;
        swap_entries(i, least);
        i = least;
    }
}

}  // namespace palmette::model
