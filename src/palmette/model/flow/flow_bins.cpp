#include "palmette/model/flow/flow_bins.hpp"

#include <algorithm>

namespace palmette::model {

FlowBins::FlowBins(std::size_t links, std::size_t bins, double shortest)
    : bins_(bins), length_(shortest), since_(links, 0), rate_(links, 0), total_(links, 0), bytes_(links * bins, 0) {}

void FlowBins::lengthen(double until) {
    while (until > length_ * static_cast<double>(bins_)) {
        for (std::size_t link = 0; link < since_.size(); ++link) {
            double* own = bytes_.data() + link * bins_;
            for (std::size_t b = 0; b < bins_; ++b)
                own[b] = 2 * b + 1 < bins_ ? own[2 * b] + own[2 * b + 1] : 2 * b < bins_ ? own[2 * b] : 0;
        }
        length_ *= 2;
    }
}

void FlowBins::add(LinkId link, double now) {
    const double from = since_[link], rate = rate_[link];
    since_[link] = now;
    if (rate <= 0 || now <= from) return;
    total_[link] += rate * (now - from);
    lengthen(now);
    double* own = bytes_.data() + link * bins_;
    const auto first = static_cast<std::size_t>(from / length_);
    const std::size_t last = std::min(static_cast<std::size_t>(now / length_), bins_ - 1);
    for (std::size_t b = std::min(first, bins_ - 1); b <= last; ++b) {
        const double begin = std::max(from, static_cast<double>(b) * length_);
        const double end = b == last ? now : static_cast<double>(b + 1) * length_;
        own[b] += rate * std::max(0.0, end - begin);
    }
}

void FlowBins::finish(double now) {
    for (LinkId link = 0; link < since_.size(); ++link) add(link, now), rate_[link] = 0;
    lengthen(now);
}

}  // namespace palmette::model
