#include "palmette/model/bound/delivery.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace palmette::model {
namespace {

constexpr double steps_of_shortest = 20;
constexpr double steps_of_longest = 512;
constexpr std::size_t most_steps = 1 << 14;

/// The entry so many steps before step `at`; 0 before the first.
double before(const std::vector<double>& values, std::size_t at, std::size_t steps) {
    return at >= steps ? values[at - steps] : 0;
}

/// How many of a host's ranks are informed in each step, the first one in step 0.
class HostRanks {
  public:
    HostRanks(std::int32_t ranks, std::size_t gap, std::size_t latency) : left_(ranks), gap_(gap), latency_(latency) {}

    void add_step() {
        const std::size_t step = informed_.size();
        const double now = std::min(step == 0 ? 1.0 : before(begun_, step, latency_), left_);
        left_ -= now;
        informed_.push_back(now);
        begun_.push_back(now + before(begun_, step, gap_));
    }
    double operator[](std::size_t step) const { return informed_[step]; }

  private:
    double left_;
    std::size_t gap_, latency_;
    std::vector<double> informed_, begun_;
};

/// Home, or all the rest: informed ranks, and the copies that have left its hosts.
class DeliveryRegion {
  public:
    DeliveryRegion(std::int32_t hosts, std::int32_t ranks_of_host)
        : hosts_(hosts), entries_left_(static_cast<double>(hosts) * ranks_of_host), ranks_left_(entries_left_) {}

    /// The root's host is entered at the start.
    void begin_with_root() {
        entries_left_ -= 1;
        entered_ = 1;
    }
    /// Messages enter so many hosts in the next step.
    void enter(double entries) {
        entries = std::max(0.0, std::min(entries, entries_left_));
        entries_left_ -= entries;
        entered_ = std::min(entered_ + entries, hosts_);
        entries_.push_back(entries);
    }
    /// Ranks that are informed in this step, beyond `others`, by the ranks of each host that was entered.
    double informed(const HostRanks& ranks, double others) const {
        const std::size_t now = entries_.size() - 1;
        for (std::size_t step = 0; step <= now; ++step)
            if (entries_[step] > 0) others += entries_[step] * ranks[now - step];
        return others;
    }
    /// Informed ranks begin messages, and links transmit the queued copies.
    void advance(double informed, std::size_t gap, double copies_a_step) {
        const double now = std::min(informed, ranks_left_);
        ranks_left_ -= now;
        begun.push_back(now + before(begun, begun.size(), gap));
        waiting_ += begun.back();
        // Without bytes as many as there are; so, too, where no host has been entered: infinity times 0.
        left.push_back(std::min(waiting_, copies_a_step * entered_));
        waiting_ -= left.back();
    }

    std::vector<double> begun;  ///< messages to other hosts, by the step in which they begin
    std::vector<double> left;   ///< copies that the links can transmit

  private:
    double hosts_, entries_left_, ranks_left_, entered_ = 0, waiting_ = 0;
    std::vector<double> entries_;
};

std::array<double, 5> times_of(const DeliveryCosts& costs) {
    return {costs.gaps.inside_s, costs.inside_latency_s, costs.gaps.between_s, costs.near_latency_s,
            costs.far_latency_s};
}

/// The first step by which all hosts outside can have all bytes; most_steps where that is later.
std::size_t first_step(const DeliveryShape& shape, const std::array<std::size_t, 5>& steps, double copies_a_step) {
    const auto [inside_gap, inside, gap, near, far] = steps;
    HostRanks of_root(shape.root_ranks, inside_gap, inside), at_home(shape.most_home_ranks, inside_gap, inside),
        outside(shape.most_ranks, inside_gap, inside);
    DeliveryRegion home(shape.home_hosts, shape.most_home_ranks), rest(shape.hosts, shape.most_ranks);
    std::vector<double> copies, shares;
    double heard = 0;  // ranks of a host outside
    home.begin_with_root();
    for (std::size_t step = 0; step < most_steps; ++step) {
        for (HostRanks* ranks : {&of_root, &at_home, &outside}) ranks->add_step();
        home.enter(before(home.begun, step, near) + before(rest.begun, step, far));
        rest.enter(before(home.begun, step, far) + before(rest.begun, step, near));
        home.advance(home.informed(at_home, of_root[step]), gap, copies_a_step);
        rest.advance(rest.informed(outside, 0), gap, copies_a_step);
        copies.push_back(before(home.left, step, far) + before(rest.left, step, near));
        heard += outside[step];
        shares.push_back(std::min(heard / shape.fewest_ranks, 1.0));
        double reached = 0;
        for (std::size_t arrival = 0; arrival <= step; ++arrival) reached += copies[arrival] * shares[step - arrival];
        if (reached >= shape.hosts * (1 - 1e-9)) return step;
    }
    return most_steps;
}

}  // namespace

double least_delivery_s(const DeliveryShape& shape, const DeliveryCosts& costs, double bytes) {
    const std::array<double, 5> times = times_of(costs);
    const auto [shortest, longest] = std::minmax_element(times.begin(), times.end());
    const double step_s = std::max(*shortest / steps_of_shortest, *longest / steps_of_longest);
    if (*shortest < step_s || *shortest <= 0 || shape.hosts < 1) return 0;
    std::array<std::size_t, 5> steps{};
    std::transform(times.begin(), times.end(), steps.begin(),
                   [&](double cost_s) { return static_cast<std::size_t>(cost_s / step_s * (1 + 1e-12)); });
    const double copies_a_step =
        bytes > 0 ? costs.link_bytes_per_s * step_s / bytes : std::numeric_limits<double>::infinity();
    return static_cast<double>(first_step(shape, steps, copies_a_step)) * step_s;
}

double delivery_s(const topology::Job& job, base::Position root, const Gaps& gaps, double inside_latency_s,
                  double bytes) {
    constexpr double unlimited = std::numeric_limits<double>::infinity();
    const std::size_t node = *job.find_level("node");
    const topology::JobLevel& hosts = job.levels()[node];
    double near_s = unlimited, fastest = 0, slowest = unlimited;
    for (std::size_t l = 0; l <= node; ++l) near_s = std::min(near_s, job.levels()[l].costs.latency_s);
    for (std::int32_t host = 0; host < hosts.groups.count(); ++host) {
        fastest = std::max(fastest, hosts.up_bytes_per_s[host]);
        slowest = std::min(slowest, hosts.up_bytes_per_s[host]);
    }
    double found_s = 0, far_s = unlimited;
    for (std::size_t l = 0; l <= node; ++l) {
        const topology::Partition& groups = job.levels()[l].groups;
        far_s = std::min(far_s, job.levels()[l].costs.latency_s);
        const std::int32_t home = groups.group_of(root.value);
        DeliveryShape shape{hosts.groups.size_of(hosts.groups.group_of(root.value)), 0, 0, 0, job.size(), 0};
        for (std::int32_t host = 0; host < hosts.groups.count(); ++host) {
            const std::int32_t ranks = hosts.groups.size_of(host);
            if (groups.group_of(hosts.groups.first(host)) == home) {
                ++shape.home_hosts;
                shape.most_home_ranks = std::max(shape.most_home_ranks, ranks);
            } else {
                ++shape.hosts;
                shape.fewest_ranks = std::min(shape.fewest_ranks, ranks);
                shape.most_ranks = std::max(shape.most_ranks, ranks);
            }
        }
        if (shape.hosts == 0) continue;
        const DeliveryCosts costs{gaps, inside_latency_s, near_s, far_s, slowest > 0 ? fastest : unlimited};
        found_s = std::max(found_s, least_delivery_s(shape, costs, bytes));
    }
    return found_s;
}

}  // namespace palmette::model
