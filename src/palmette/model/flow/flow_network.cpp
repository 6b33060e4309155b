#include "palmette/model/flow/flow_network.hpp"

#include <algorithm>

namespace palmette::model {
namespace {

constexpr std::int64_t most_exact = 200'000;
/// The tolerance of larger plans doubles, between these limits, each time so many bundles per message were assigned new
/// rates.
constexpr double least_tolerance = 0.01, most_tolerance = 0.08;
constexpr std::uint64_t work_a_step = 2;
/// Bins of all links together: 8 bytes each during the simulation.
constexpr std::size_t most_cells = std::size_t{1} << 23;

double tolerance_for(const FlowOptions& options, std::int64_t messages) {
    if (options.tolerance >= 0) return options.tolerance;
    return messages > most_exact ? least_tolerance : 0;
}

std::size_t bins_for(std::size_t links, std::size_t most) {
    std::size_t bins = std::clamp<std::size_t>(most, 2, 4096);
    while (bins > 16 && bins * links > most_cells) bins /= 2;
    return bins;
}

}  // namespace

FlowNetwork::FlowNetwork(const topology::Job& job, const FlowOptions& options, std::int64_t messages,
                         double shortest_bin_s)
    : options_(options),
      tolerance_(tolerance_for(options, messages)),
      sharing_(std::max(tolerance_, FairSharing::exact)),
      routes_(job, sharing_),
      flows_(sharing_),
      bins_(sharing_.link_count(), bins_for(sharing_.link_count(), options.most_bins), shortest_bin_s),
      own_bytes_(sharing_.link_count(), 0),
      work_between_(work_a_step * static_cast<std::uint64_t>(messages)),
      raise_tolerance_at_(work_between_) {}

void FlowNetwork::start(BundleId bundle, FlowBundles::Flow flow, double bytes, double now) {
    flows_.start(bundle, flow, bytes, now);
    settle_by_ = now;
}

void FlowNetwork::follow_end(BundleId bundle, double bytes, double now) {
    const double at = tolerance_ > 0 ? now + tolerance_ * bytes / sharing_.even_share(bundle) : now;
    settle_by_ = std::min(settle_by_, at);
    if (tolerance_ <= 0) return;
    for (const LinkId link : routes_.links_of(bundle)) bins_.add_rate(link, now, -sharing_.rate(bundle));
    ended_.push_back(bundle);
}

double FlowNetwork::settle(double now) {
    now = std::max(now, settle_by_);
    settle_by_ = FairSharing::unlimited;
    raise_tolerance();
    flows_.settle(now);
    for (const LinkId link : sharing_.touched()) bins_.set(link, now, sharing_.load(link));
    for (const BundleId bundle : ended_)
        for (const LinkId link : routes_.links_of(bundle)) bins_.set(link, now, sharing_.load(link));
    ended_.clear();
    if (!sharing_.touched().empty()) ++settled_;
    return now;
}

/// Raises the tolerance where rate changes keep propagating to many flows, to bound the time of a large simulation.
void FlowNetwork::raise_tolerance() {
    if (options_.tolerance >= 0 || tolerance_ <= 0 || tolerance_ >= most_tolerance ||
        sharing_.work() < raise_tolerance_at_)
        return;
    tolerance_ *= 2;
    sharing_.set_tolerance(tolerance_);
    raise_tolerance_at_ += work_between_;
}

void FlowNetwork::conclude(double now, FlowResult& out) {
    bins_.finish(now);
    out.tolerance = tolerance_;
    out.bin_s = bins_.length();
    out.bins = std::min(bins_.bins(), static_cast<std::size_t>(now / bins_.length() * (1 - flow_same_time)) + 1);
    for (LinkId link = 0; link < routes_.places().size(); ++link) {
        const LinkPlace& place = routes_.places()[link];
        const double carried = bins_.total(link), could = sharing_.capacity(link) * now;
        out.links.push_back({place.level, place.group, place.outwards, sharing_.capacity(link), own_bytes_[link],
                             carried, could > 0 ? carried / could : 0});
        for (std::size_t b = 0; b < out.bins; ++b) out.carried.push_back(static_cast<float>(bins_.of(link, b)));
    }
    out.settled = settled_;
    out.work = sharing_.work();
}

}  // namespace palmette::model
