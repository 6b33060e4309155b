#include "palmette/plan/contributions.hpp"

#include <algorithm>

#include "palmette/base/text.hpp"

namespace palmette::plan {
namespace {

void append(std::vector<Interval>& list, Interval next) {
    if (!list.empty() && list.back().end() == next.first)
        list.back().count += next.count;
    else
        list.push_back(next);
}

}  // namespace

Contents Contributions::leaf(std::int32_t rank, std::int64_t block) {
    const auto [at, fresh] = leaves_.try_emplace({rank, block}, static_cast<Contents>(nodes_.size()));
    if (fresh) nodes_.push_back({block, {{rank, 1}}, {{rank, 1}}});
    return at->second;
}

std::optional<Contents> Contributions::combine(Contents left, Contents right, std::string& why) {
    if (const auto known = combined_.find({left, right}); known != combined_.end()) return known->second;
    const Node& a = nodes_[static_cast<std::size_t>(left)];
    const Node& b = nodes_[static_cast<std::size_t>(right)];
    if (a.block != b.block) {
        why = base::cat("combines block ", a.block, " with block ", b.block);
        return std::nullopt;
    }
    Node node{a.block, a.order, {}};
    for (const Interval& run : b.order) append(node.order, run);
    std::vector<Interval> all = a.sorted;
    all.insert(all.end(), b.sorted.begin(), b.sorted.end());
    std::sort(all.begin(), all.end(), [](const Interval& x, const Interval& y) { return x.first < y.first; });
    for (const Interval& run : all) {
        if (!node.sorted.empty() && run.first < node.sorted.back().end()) {
            why = base::cat("combines the contribution of rank ", run.first, " to block ", a.block, " twice");
            return std::nullopt;
        }
        append(node.sorted, run);
    }
    const auto made = static_cast<Contents>(nodes_.size());
    nodes_.push_back(std::move(node));
    combined_[{left, right}] = made;
    return made;
}

bool Contributions::holds(Contents contents, std::int32_t rank) const {
    const auto& runs = nodes_[static_cast<std::size_t>(contents)].sorted;
    return std::any_of(runs.begin(), runs.end(), [&](const Interval& r) { return r.first <= rank && rank < r.end(); });
}

std::int64_t Contributions::count(Contents contents) const {
    std::int64_t total = 0;
    for (const Interval& run : nodes_[static_cast<std::size_t>(contents)].sorted) total += run.count;
    return total;
}

std::string Contributions::text(Contents contents) const {
    const Node& node = nodes_[static_cast<std::size_t>(contents)];
    const bool one = node.order.size() == 1 && node.order[0].count == 1;
    std::string ranks;
    for (const Interval& run : node.order) {
        if (!ranks.empty()) ranks += ", ";
        ranks += run.count == 1 ? base::cat(run.first) : base::cat(run.first, " to ", run.end() - 1);
    }
    return base::cat(one ? "the contribution of rank " : "the contributions of ranks ", ranks, " to block ",
                     node.block);
}

}  // namespace palmette::plan
