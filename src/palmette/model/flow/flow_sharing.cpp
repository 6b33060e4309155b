#include "palmette/model/flow/flow_sharing.hpp"

#include <algorithm>

namespace palmette::model {
namespace {

/// Changes normally propagate over a few links; beyond so many rounds it is cheaper to refill the whole connected
/// component than to check fairness link by link.
constexpr int incremental_rounds = 20;

using Share = std::pair<double, LinkId>;

/// Ties between equal shares go to the lower link number. Shares are never NaN, so plain comparisons suffice.
bool is_before(const Share& a, const Share& b) {
    return a.first < b.first || (a.first == b.first && a.second < b.second);
}

/// Restores the heap after a change of its first entry.
void sift_down_first(std::vector<Share>& heap) {
    const Share sinking = heap.front();
    const std::size_t size = heap.size();
    std::size_t gap = 0;
    for (std::size_t child = 1; child < size; child = 2 * gap + 1) {
        if (child + 1 < size && is_before(heap[child + 1], heap[child])) ++child;
        if (!is_before(heap[child], sinking)) break;
        heap[gap] = heap[child];
        gap = child;
    }
    heap[gap] = sinking;
}

void pop_first(std::vector<Share>& heap) {
    heap.front() = heap.back();
    heap.pop_back();
    if (!heap.empty()) sift_down_first(heap);
}

}  // namespace

LinkId FairSharing::add_link(double capacity) {
    links_.emplace_back();
    links_.back().capacity = capacity;
    on_.emplace_back();
    return static_cast<LinkId>(links_.size() - 1);
}

BundleId FairSharing::add_bundle(const std::vector<LinkId>& links, double cap) {
    Bundle bundle;
    bundle.first = static_cast<std::uint32_t>(routes_.size());
    bundle.count = static_cast<std::uint32_t>(links.size());
    routes_.insert(routes_.end(), links.begin(), links.end());
    places_.resize(routes_.size());
    const auto known = std::find(caps_.begin(), caps_.end(), cap);
    bundle.cap = static_cast<std::uint32_t>(known - caps_.begin());
    if (known == caps_.end()) {
        caps_.push_back(cap);
        at_cap_.emplace_back();
        caps_ascending_.push_back(bundle.cap);
        std::sort(caps_ascending_.begin(), caps_ascending_.end(),
                  [&](std::uint32_t a, std::uint32_t b) { return caps_[a] < caps_[b]; });
    }
    bundles_.push_back(bundle);
    unfrozen_.push_back(0);
    return static_cast<BundleId>(bundles_.size() - 1);
}

void FairSharing::change(BundleId bundle, std::int32_t flows) {
    Bundle& b = bundles_[bundle];
    b.flows += flows;
    for (std::uint32_t i = b.first; i < b.first + b.count; ++i) links_[routes_[i]].flows += flows;
    if (b.dirty) return;
    b.dirty = true;
    dirty_.push_back(bundle);
}

double FairSharing::even_share(BundleId bundle) const {
    const Bundle& b = bundles_[bundle];
    double share = caps_[b.cap];
    for (std::uint32_t i = b.first; i < b.first + b.count; ++i) {
        const Link& link = links_[routes_[i]];
        share = std::min(share, link.capacity / std::max(1, link.flows));
    }
    return share;
}

void FairSharing::enlist(BundleId bundle) {
    const Bundle& b = bundles_[bundle];
    for (std::uint32_t i = b.first; i < b.first + b.count; ++i) {
        std::vector<BundleId>& list = on_[routes_[i]];
        places_[i] = static_cast<std::uint32_t>(list.size());
        list.push_back(bundle);
    }
}

void FairSharing::delist(BundleId bundle) {
    const Bundle& b = bundles_[bundle];
    for (std::uint32_t i = b.first; i < b.first + b.count; ++i) {
        const LinkId link = routes_[i];
        std::vector<BundleId>& list = on_[link];
        const BundleId last = list.back();
        list[places_[i]] = last;
        list.pop_back();
        if (last == bundle) continue;
        const Bundle& moved = bundles_[last];
        for (std::uint32_t j = moved.first; j < moved.first + moved.count; ++j)
            if (routes_[j] == link) places_[j] = places_[i];
    }
}

void FairSharing::touch(LinkId link) {
    if (links_[link].touched) return;
    links_[link].touched = true;
    touched_.push_back(link);
}

void FairSharing::set_free(BundleId bundle) {
    Bundle& b = bundles_[bundle];
    if (b.free) return;
    b.free = true;
    free_.push_back(bundle);
    for (std::uint32_t i = b.first; i < b.first + b.count; ++i) {
        touch(routes_[i]);
        links_[routes_[i]].load -= b.rate * b.settled_flows;
    }
    if (b.bottleneck != none) --links_[b.bottleneck].held;
}

void FairSharing::open(LinkId link) {
    if (links_[link].open) return;
    links_[link].open = true;
    open_.push_back(link);
    for (const BundleId bundle : on_[link]) set_free(bundle);
    links_[link].load = 0;  // exactly: differences of sums would let errors grow
}

void FairSharing::freeze(BundleId bundle, double rate, LinkId bottleneck) {
    Bundle& b = bundles_[bundle];
    unfrozen_[bundle] = 0;
    b.rate = rate;
    b.bottleneck = bottleneck;
    for (std::uint32_t i = b.first; i < b.first + b.count; ++i) {
        Link& link = links_[routes_[i]];
        link.left -= rate * b.flows;
        link.unfrozen_flows -= b.flows;
        link.highest = rate;
    }
}

double FairSharing::share_of(const Link& link) const {
    if (link.unfrozen_flows <= 0) return unlimited;
    const double share = link.left / link.unfrozen_flows;
    // Where other bundles stay frozen, a new flow gets at most their rate, not all of the freed capacity.
    return is_loose() && link.held > 0 && !link.open ? std::min(share, link.level) : share;
}

void FairSharing::fill() {
    work_ += free_.size();
    for (const LinkId l : touched_) {
        Link& link = links_[l];
        link.left = std::max(0.0, link.capacity - link.load);
        link.unfrozen_flows = 0;
        link.highest = 0;
        link.frozen_rate = unlimited;
    }
    std::size_t waiting = 0;
    for (const BundleId id : free_) {
        Bundle& b = bundles_[id];
        if (b.flows == 0) {
            b.rate = 0;
            b.bottleneck = none;
            continue;
        }
        ++waiting;
        unfrozen_[id] = 1;
        for (std::uint32_t i = b.first; i < b.first + b.count; ++i) links_[routes_[i]].unfrozen_flows += b.flows;
        if (caps_[b.cap] < unlimited) at_cap_[b.cap].push_back(id);
    }
    heap_.clear();
    for (const LinkId l : touched_)
        if (links_[l].unfrozen_flows > 0) heap_.emplace_back(share_of(links_[l]), l);
    std::make_heap(heap_.begin(), heap_.end(), [](const Share& a, const Share& b) { return is_before(b, a); });
    double reached = 0;
    std::size_t next_cap = 0;
    while (waiting > 0) {
        // Shares only grow while others are frozen, so a stale entry can be pushed back into the heap.
        double share = unlimited;
        while (!heap_.empty()) {
            const auto [old, l] = heap_.front();
            const Link& link = links_[l];
            const double now = share_of(link);
            if (now <= old) {
                share = std::max(old, reached);
                break;
            }
            if (link.unfrozen_flows > 0) {
                heap_.front().first = now;
                sift_down_first(heap_);
            } else {
                pop_first(heap_);
            }
        }
        while (next_cap < caps_ascending_.size() && at_cap_[caps_ascending_[next_cap]].empty()) ++next_cap;
        const double cap = next_cap < caps_ascending_.size() ? caps_[caps_ascending_[next_cap]] : unlimited;
        if (cap <= share) {
            for (const BundleId id : at_cap_[caps_ascending_[next_cap]])
                if (unfrozen_[id] != 0) freeze(id, cap, none), --waiting;
            at_cap_[caps_ascending_[next_cap]].clear();
            reached = cap;
            continue;
        }
        const LinkId full = heap_.front().second;
        pop_first(heap_);
        links_[full].frozen_rate = share;
        for (const BundleId id : on_[full])
            if (unfrozen_[id] != 0) freeze(id, share, full), --waiting;
        reached = share;
    }
    for (const std::uint32_t c : caps_ascending_) at_cap_[c].clear();
}

bool FairSharing::is_unfair(LinkId l) const {
    const Link& link = links_[l];
    if (link.open) return false;
    if (link.held > 0) {
        // The bottleneck of bundles that stay frozen must still be one.
        if (link.left > link.capacity * slack_) return true;
        if (link.highest > link.lowest * (1 + slack_)) return true;
        return link.frozen_rate < link.level * (1 - slack_);
    }
    if (link.frozen_rate == unlimited) return false;
    return std::any_of(on_[l].begin(), on_[l].end(), [&](BundleId id) {
        return !bundles_[id].free && bundles_[id].rate > link.frozen_rate * (1 + slack_);
    });
}

void FairSharing::commit() {
    for (const LinkId l : touched_) {
        Link& link = links_[l];
        if (on_[l].empty()) link.load = 0;
        link.touched = link.open = false;
    }
    for (const BundleId id : free_) {
        Bundle& b = bundles_[id];
        b.free = false;
        for (std::uint32_t i = b.first; i < b.first + b.count; ++i) links_[routes_[i]].load += b.rate * b.flows;
        if (b.bottleneck != none) {
            Link& link = links_[b.bottleneck];
            // Both ends of the range, so that tolerated deviations don't accumulate.
            link.level = link.held == 0 ? b.rate : std::max(link.level, b.rate);
            link.lowest = link.held == 0 ? b.rate : std::min(link.lowest, b.rate);
            ++link.held;
        }
        b.settled_flows = b.flows;
        changed_.push_back(id);
    }
}

const std::vector<BundleId>& FairSharing::settle() {
    changed_.clear();
    touched_.clear();
    free_.clear();
    open_.clear();
    for (const BundleId id : dirty_) {
        Bundle& b = bundles_[id];
        b.dirty = false;
        if (b.flows == b.settled_flows) continue;
        if (b.settled_flows == 0) enlist(id);
        set_free(id);
        if (b.flows == 0) delist(id);
    }
    dirty_.clear();
    if (free_.empty()) return changed_;
    // Saturated links of started or completed flows are certainly unfair, unless a completed flow is replaced by a new
    // one.
    for (std::size_t i = 0, links = touched_.size(); i < links && !is_loose(); ++i)
        if (links_[touched_[i]].held > 0) open(touched_[i]);
    for (int round = 0;; ++round) {
        fill();
        const std::size_t before = open_.size();
        const std::size_t links = touched_.size();
        for (std::size_t i = 0; i < links; ++i)
            if (is_unfair(touched_[i])) open(touched_[i]);
        if (open_.size() == before) break;
        if (round >= incremental_rounds)
            for (std::size_t i = 0; i < touched_.size(); ++i) open(touched_[i]);
    }
    commit();
    return changed_;
}

}  // namespace palmette::model
