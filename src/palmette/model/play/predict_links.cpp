#include "palmette/model/play/predict_links.hpp"

#include <algorithm>
#include <functional>

namespace palmette::model {

double Link::queue(double now, double bytes) {
    last_ = std::max(last_, now) + bytes / bytes_per_s_;
    return last_;
}

void Link::advance(double now) {
    if (!waiting_.empty()) served_ += (now - last_) * bytes_per_s_ / static_cast<double>(waiting_.size());
    last_ = now;
}

double Link::next(double now) const {
    const double left = std::max(0.0, waiting_.front().until - served_);
    return now + left * static_cast<double>(waiting_.size()) / bytes_per_s_;
}

double Link::enter(double now, double bytes, std::uint32_t message) {
    advance(now);
    waiting_.push_back({served_ + bytes, message});
    std::push_heap(waiting_.begin(), waiting_.end(), std::greater<>());
    ++version_;
    return next(now);
}

double Link::leave(double now, std::vector<std::uint32_t>& completed) {
    advance(now);
    // Equal messages complete together despite rounding of their sums; the first one completes in any case, as it is
    // due.
    const double until = std::max(served_, waiting_.front().until) * (1 + 1e-12) + 1e-6;
    while (!waiting_.empty() && waiting_.front().until <= until) {
        completed.push_back(waiting_.front().message);
        std::pop_heap(waiting_.begin(), waiting_.end(), std::greater<>());
        waiting_.pop_back();
    }
    ++version_;
    if (waiting_.empty()) {
        served_ = 0;
        return -1;
    }
    return next(now);
}

Links::Links(const topology::Job& job, const Costs& costs) : job_(job) {
    const auto add = [this](double bytes_per_s) { links_.insert(links_.end(), 2, Link(bytes_per_s)); };
    for (std::size_t l = 0; l < job.levels().size(); ++l) {
        const topology::Partition& groups = job.levels()[l].groups;
        bool limited = false;
        for (std::int32_t g = 0; g < groups.count(); ++g) limited = limited || costs.edge_bytes_per_s(job, l, g) > 0;
        first_.push_back(limited ? static_cast<std::int64_t>(links_.size()) : -1);
        for (std::int32_t g = 0; limited && g < groups.count(); ++g) add(costs.edge_bytes_per_s(job, l, g));
    }
    first_of_aggregators_ = static_cast<std::int64_t>(links_.size());
    for (const topology::JobAggregator& one : job.aggregators()) add(one.up_bytes_per_s);
    first_of_memories_ = static_cast<std::int64_t>(links_.size());
    double memory = 0;
    for (const MessageCosts& level : costs.levels) memory = std::max(memory, level.together_bytes_per_s);
    if (memory > 0) links_.insert(links_.end(), static_cast<std::size_t>(job.nodes().groups.count()), Link(memory));
}

void Links::route(std::int32_t a, std::int32_t b, std::size_t level, std::vector<std::uint32_t>& out) const {
    const auto cross = [&](std::int64_t first, std::int32_t group, std::int64_t inwards) {
        if (group < 0) return;
        const auto link = static_cast<std::uint32_t>(first + 2 * std::int64_t{group} + inwards);
        if (links_[link].bytes_per_s() > 0) out.push_back(link);
    };
    for (std::size_t l = level; l < first_.size(); ++l) {
        if (first_[l] < 0) continue;
        cross(first_[l], job_.group_at(l, {a}), 0);
        cross(first_[l], job_.group_at(l, {b}), 1);
    }
    cross(first_of_aggregators_, a - job_.size(), 0);
    cross(first_of_aggregators_, b - job_.size(), 1);
}

}  // namespace palmette::model
