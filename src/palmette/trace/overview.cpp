#include "palmette/trace/overview.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

namespace palmette::trace {
namespace {

/// The `most` heaviest of all that were offered, in O(1) a time.
template <class Item>
class Heaviest {
  public:
    explicit Heaviest(std::size_t most) : most_(most) {}
    void offer(double weight, const Item& item) {
        ++offered_;
        if (most_ == 0 || weight < least_) return;
        kept_.push_back({weight, item});
        if (kept_.size() >= 2 * most_) shrink();
    }
    std::uint64_t offered() const { return offered_; }
    std::vector<Item> take() {
        if (kept_.size() > most_) shrink();
        std::vector<Item> out;
        out.reserve(kept_.size());
        for (auto& [weight, item] : kept_) out.push_back(item);
        return out;
    }

  private:
    void shrink() {
        std::nth_element(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(most_) - 1, kept_.end(),
                         [](const auto& a, const auto& b) { return a.first > b.first; });
        kept_.resize(most_);
        least_ = kept_.back().first;
    }
    std::size_t most_;
    double least_ = -1;
    std::uint64_t offered_ = 0;
    std::vector<std::pair<double, Item>> kept_;
};

/// Times cut into equal bins.
class Bins {
  public:
    Bins() = default;
    Bins(std::int64_t begin_ns, std::int64_t end_ns, std::int32_t count)
        : begin_(begin_ns),
          end_(end_ns),
          count_(count),
          width_(std::max(1.0, static_cast<double>(end_ns - begin_ns) / count)) {}
    double width_ns() const { return width_; }
    std::int32_t at(std::int64_t time_ns) const {
        const auto bin = static_cast<std::int64_t>(static_cast<double>(time_ns - begin_) / width_);
        return static_cast<std::int32_t>(std::clamp<std::int64_t>(bin, 0, count_ - 1));
    }
    /// Calls `use` with each bin that the interval touches and the nanoseconds of it that lie there.
    template <class Use>
    void spread(std::int64_t from_ns, std::int64_t to_ns, Use use) const {
        from_ns = std::max(from_ns, begin_);
        to_ns = std::min(to_ns, end_);
        if (to_ns <= from_ns) return;
        const std::int32_t last = at(to_ns);
        for (std::int32_t bin = at(from_ns); bin <= last; ++bin) {
            const double low = std::max(static_cast<double>(from_ns - begin_), bin * width_);
            const double high = std::min(static_cast<double>(to_ns - begin_), (bin + 1) * width_);
            if (high > low) use(bin, high - low);
        }
    }

  private:
    std::int64_t begin_ = 0, end_ = 0;
    std::int32_t count_ = 1;
    double width_ = 1;
};

struct Cell {
    float mpi_ns = 0, waiting_ns = 0;
    float majority_ns = 0;  ///< by which `function` leads
    std::uint16_t function = 0xFFFF;
};

class Collector : public Observer {
  public:
    Collector(const Trace& trace, const OverviewOptions& options)
        : trace_(trace),
          options_(options),
          calls_(options.calls),
          messages_(options.messages),
          parts_of_plan_(trace.plans.size()) {
        assign_rows();
        for (const auto& groups : options_.groups) {
            first_link_.push_back(links_);
            const auto most = std::max_element(groups.begin(), groups.end());
            links_ += most == groups.end() ? 0 : static_cast<std::size_t>(std::max(0, *most + 1));
        }
        const auto link_cells = links_ * static_cast<std::size_t>(options_.link_bins);
        out_.link_bins = options_.link_bins;
        out_.link_out.resize(link_cells);
        out_.link_in.resize(link_cells);
    }

    void spans(std::int64_t begin_ns, std::int64_t end_ns) override {
        out_.begin_ns = begin_ns;
        out_.end_ns = end_ns;
        bins_ = Bins(begin_ns, end_ns, options_.bins);
        link_bins_ = Bins(begin_ns, end_ns, options_.link_bins);
        cells_.resize(static_cast<std::size_t>(out_.rows) * static_cast<std::size_t>(options_.bins));
    }

    void call(const Event& call, std::int32_t process, double waiting_s, std::int32_t waits_for) override {
        if (trace_.kinds[call.function] == Kind::init || call.begin_ns > out_.end_ns) return;
        Cell* const row = &cells_[static_cast<std::size_t>(out_.row_of[static_cast<std::size_t>(process)]) *
                                  static_cast<std::size_t>(options_.bins)];
        bins_.spread(call.begin_ns, call.end_ns, [&](std::int32_t bin, double ns) {
            Cell& cell = row[bin];
            const auto part = static_cast<float>(ns);
            cell.mpi_ns += part;
            if (cell.function == call.function) {
                cell.majority_ns += part;
            } else if (part > cell.majority_ns) {
                cell.majority_ns = part - cell.majority_ns;
                cell.function = call.function;
            } else {
                cell.majority_ns -= part;
            }
        });
        const auto waiting_ns = static_cast<std::int64_t>(waiting_s * 1e9);
        bins_.spread(call.begin_ns, call.begin_ns + waiting_ns,
                     [&](std::int32_t bin, double ns) { row[bin].waiting_ns += static_cast<float>(ns); });
        calls_.offer(static_cast<double>(call.end_ns - call.begin_ns),
                     {call.begin_ns, call.end_ns - call.begin_ns, waiting_ns, call.path, process, waits_for,
                      call.function, call.bytes});
    }

    void collective(const Event& part, std::int32_t process, std::int32_t rank) override {
        if (part.plan != 0) {
            served(part, process);
            return;
        }
        // The root's call says how much, or rank 0's.
        const std::int32_t root = root_of(trace_.kinds[part.function], part);
        if (rank != std::max(0, root)) return;
        const std::uint64_t bytes = unserved_.size() < most_sizes ? part.bytes : rounded_down(part.bytes);
        auto& counts = unserved_[{part.function, part.communicator, root, bytes}];
        counts.resize(static_cast<std::size_t>(options_.link_bins));
        ++counts[static_cast<std::size_t>(link_bins_.at(part.begin_ns))];
    }

    void send(const Event& send, std::int32_t from, std::int32_t to) override {
        if (links_ == 0) return;
        const auto bytes = static_cast<double>(send.bytes);
        for_links(from, to, [&](std::size_t link, bool outwards) {
            load(outwards)[cell_of(link, link_bins_.at(send.begin_ns))] += bytes;
        });
    }

    void message(std::int32_t from, std::int32_t to, std::int64_t sent_ns, std::int64_t received_ns, double bytes,
                 double waiting_s) override {
        // What was waited for comes first, then what is large.
        messages_.offer(waiting_s * 1e12 + bytes, {sent_ns, received_ns, from, to, bytes, waiting_s});
    }

    Overview take() {
        out_.bins = options_.bins;
        out_.calls_in_all = calls_.offered();
        out_.messages_in_all = messages_.offered();
        out_.calls = calls_.take();
        out_.messages = messages_.take();
        std::sort(out_.calls.begin(), out_.calls.end(),
                  [](const DrawnCall& a, const DrawnCall& b) { return a.begin_ns < b.begin_ns; });
        std::sort(out_.messages.begin(), out_.messages.end(),
                  [](const DrawnMessage& a, const DrawnMessage& b) { return a.sent_ns < b.sent_ns; });
        for (std::size_t i = 0; i < cells_.size(); ++i) {
            const Cell& cell = cells_[i];
            const double whole = bins_.width_ns() * out_.in_row[i / static_cast<std::size_t>(options_.bins)];
            const auto share = [&](float ns) {
                return static_cast<std::uint8_t>(std::lround(255 * std::clamp(ns / whole, 0.0, 1.0)));
            };
            out_.mpi.push_back(share(cell.mpi_ns));
            out_.waiting.push_back(share(cell.waiting_ns));
            out_.function.push_back(cell.function < no_function ? static_cast<std::uint8_t>(cell.function)
                                                                : no_function);
        }
        for (auto& [key, counts] : unserved_) {
            const auto& [function, communicator, root, bytes] = key;
            out_.unserved.push_back({function, communicator, root, bytes, std::move(counts)});
        }
        return std::move(out_);
    }

  private:
    /// What one call by a plan sends over a link.
    struct LinkPart {
        std::size_t link;
        bool outwards;
        double bytes;
    };
    struct PlanParts {
        bool known = false;  ///< `links` is
        std::vector<LinkPart> links;
    };

    /// Rows in the order of ranks.
    void assign_rows() {
        const std::size_t count = trace_.processes.size();
        std::vector<std::size_t> order(count);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return trace_.processes[a].rank < trace_.processes[b].rank;
        });
        const auto most = static_cast<std::size_t>(std::max(1, options_.rows));
        const std::size_t each = (count + most - 1) / most;
        out_.row_of.resize(count);
        for (std::size_t i = 0; i < count; ++i) out_.row_of[order[i]] = static_cast<std::int32_t>(i / each);
        out_.rows = static_cast<std::int32_t>(count == 0 ? 0 : (count + each - 1) / each);
        out_.in_row.resize(static_cast<std::size_t>(out_.rows));
        for (const std::int32_t row : out_.row_of) ++out_.in_row[static_cast<std::size_t>(row)];
    }

    std::vector<double>& load(bool outwards) { return outwards ? out_.link_out : out_.link_in; }
    std::size_t cell_of(std::size_t link, std::int32_t bin) const {
        return link * static_cast<std::size_t>(options_.link_bins) + static_cast<std::size_t>(bin);
    }

    /// Calls `use` with each link that a message crosses, and whether outwards.
    template <class Use>
    void for_links(std::int32_t from, std::int32_t to, Use use) const {
        const auto rank = [&](std::int32_t process) {
            return static_cast<std::size_t>(trace_.processes[static_cast<std::size_t>(process)].rank);
        };
        const std::size_t a = rank(from);
        const std::size_t b = rank(to);
        for (std::size_t level = 0; level < options_.groups.size(); ++level) {
            const auto& groups = options_.groups[level];
            if (a >= groups.size() || b >= groups.size() || groups[a] == groups[b]) continue;
            if (groups[a] >= 0) use(first_link_[level] + static_cast<std::size_t>(groups[a]), true);
            if (groups[b] >= 0) use(first_link_[level] + static_cast<std::size_t>(groups[b]), false);
        }
    }

    /// The process that a plan's message goes to; -1: not recorded.
    std::int32_t receiver(const TracedPlan& plan, const TracedSend& send) const {
        const auto& members = trace_.communicators[plan.communicator].process_of;
        const auto peer = static_cast<std::size_t>(send.peer);
        return send.peer >= 0 && peer < members.size() ? members[peer] : -1;
    }

    void served(const Event& part, std::int32_t process) {
        if (links_ == 0) return;
        const TracedPlan& plan = trace_.plans[part.plan];
        PlanParts& parts = parts_of_plan_[part.plan];
        if (!parts.known) {
            parts.known = true;
            std::map<std::pair<std::size_t, bool>, double> sums;
            for (const TracedSend& send : plan.sends) {
                const std::int32_t to = receiver(plan, send);
                if (to < 0) continue;
                for_links(process, to, [&](std::size_t link, bool outwards) { sums[{link, outwards}] += send.bytes; });
            }
            for (const auto& [key, bytes] : sums) parts.links.push_back({key.first, key.second, bytes});
        }
        const double length = static_cast<double>(std::max<std::int64_t>(1, part.end_ns - part.begin_ns));
        for (const LinkPart& one : parts.links) {
            double spread = 0;
            link_bins_.spread(part.begin_ns, part.end_ns, [&](std::int32_t bin, double ns) {
                load(one.outwards)[cell_of(one.link, bin)] += one.bytes * ns / length;
                spread += ns / length;
            });
            // What lies outside of the span counts as well.
            load(one.outwards)[cell_of(one.link, link_bins_.at(part.begin_ns))] +=
                one.bytes * std::max(0.0, 1 - spread);
        }
    }

    const Trace& trace_;
    const OverviewOptions& options_;
    Overview out_;
    Bins bins_, link_bins_;
    std::vector<Cell> cells_;
    Heaviest<DrawnCall> calls_;
    Heaviest<DrawnMessage> messages_;
    std::vector<PlanParts> parts_of_plan_;  ///< by plan, whose recorder is one process
    std::vector<std::size_t> first_link_;   ///< by level
    std::size_t links_ = 0;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::int32_t, std::uint64_t>, std::vector<std::uint32_t>>
        unserved_;
};

}  // namespace

OverviewWithWaits view(const Trace& trace, const OverviewOptions& options, const BoundOf& bound_of) {
    Collector collector(trace, options);
    OverviewWithWaits out;
    out.waits = find_waits(trace, &collector, bound_of);
    out.overview = collector.take();
    return out;
}

}  // namespace palmette::trace
