#include "palmette/collectives/exchanges/network_share.hpp"

#include <algorithm>
#include <cmath>

namespace palmette::collectives {
namespace {

using topology::Job;
using topology::JobLevel;

/// Share of its bandwidth that an aggregator's link reaches where it is too slow for the whole vector: it stands idle
/// until the first contributions of all groups are complete, and again when the last ones are. At 50 Mbit/s, with 8
/// members and 256 KB to 1 MB, 0.75 was best (docs/results/2026-11-28-in-network.md).
constexpr double fan_in_efficiency = 0.75;

/// Time of an edge or link for a whole vector of one byte: all through the network, and all by the hosts.
struct Line {
    double network_s, hosts_s;
    double at(double share) const { return hosts_s + share * (network_s - hosts_s); }
};

/// A nested ring over p ranks moves so much of the vector over the edge of s of them, each way.
double ring_part(double s, double p) { return 2 * (p - s) / p; }

std::vector<Line> lines_of(const Job& job, std::size_t level, const std::vector<std::int32_t>& aggregators,
                           double efficiency) {
    const double p = job.size();
    const topology::Partition& groups = job.levels()[level].groups;
    std::vector<Line> out;
    for (std::size_t l = 0; l < job.levels().size(); ++l) {
        const JobLevel& at = job.levels()[l];
        if (at.slowest_edge_bytes_per_s <= 0) continue;
        for (std::int32_t g = 0; g < at.groups.count(); ++g) {
            const double capacity = at.free_bytes_per_s(g);
            if (capacity <= 0) continue;
            const double s = at.groups.size_of(g);
            const std::int32_t first = groups.group_of(at.groups.first(g));
            const double around = groups.size_of(first);
            const double network =
                l <= level ? groups.group_of(at.groups.end(g) - 1) - first + 1 : ring_part(s, around) + s / around;
            out.push_back({network / capacity, ring_part(s, p) / capacity});
        }
    }
    const double together = aggregate_capacity(job, aggregators);
    if (together > 0) out.push_back({groups.count() / (efficiency * together), 0});
    return out;
}

double fastest_share(const std::vector<Line>& lines) {
    constexpr std::int32_t steps = 1 << 14;
    const auto slowest = [&](std::int32_t step) {
        double worst = 0;
        for (const Line& line : lines) worst = std::max(worst, line.at(static_cast<double>(step) / steps));
        return worst;
    };
    // The slowest of straight lines is convex; where it is level, the larger share.
    std::int32_t low = 0, high = steps;
    while (low < high) {
        const std::int32_t middle = low + (high - low) / 2;
        if (slowest(middle + 1) <= slowest(middle) * (1 + 1e-12))
            low = middle + 1;
        else
            high = middle;
    }
    return static_cast<double>(low) / steps;
}

}  // namespace

std::vector<std::int32_t> top_aggregators(const Job& job) {
    std::vector<std::int32_t> out;
    for (std::size_t i = 0; i < job.aggregators().size(); ++i)
        if (job.aggregators()[i].level < 0 && job.aggregators()[i].kind == topology::Aggregator::Kind::sharp)
            return {static_cast<std::int32_t>(i)};
    for (std::size_t i = 0; i < job.aggregators().size(); ++i) {
        if (job.aggregators()[i].level >= 0) continue;
        if (job.aggregators()[i].up_bytes_per_s <= 0) return {static_cast<std::int32_t>(i)};
        out.push_back(static_cast<std::int32_t>(i));
    }
    return out;
}

double aggregate_capacity(const Job& job, const std::vector<std::int32_t>& aggregators) {
    double together = 0;
    for (const std::int32_t one : aggregators)
        together += job.aggregators()[static_cast<std::size_t>(one)].up_bytes_per_s;
    return together;
}

bool switches_reduce(const Job& job) {
    const std::vector<std::int32_t> top = top_aggregators(job);
    return !top.empty() &&
           job.aggregators()[static_cast<std::size_t>(top.front())].kind == topology::Aggregator::Kind::sharp;
}

std::size_t network_level(const Job& job, const Spec& spec) {
    const auto name = spec.find("level");
    if (!name) return switches_reduce(job) ? *job.find_level("node") : 0;
    const auto wanted = job.find_level(*name);
    return wanted ? *wanted : *job.find_level("node");
}

bool uses_aggregators(plan::Collective collective, const Spec& spec) {
    return algorithm_named(collective, spec.name).in_network && spec.find("combine") != "hosts";
}

Spec network_by_hosts(Spec spec) {
    std::erase_if(spec.options, [](const auto& option) { return option.first == "combine"; });
    spec.options.emplace_back("combine", "hosts");
    return spec;
}

double network_share(const Job& job, std::size_t level, const std::vector<std::int32_t>& aggregators) {
    if (switches_reduce(job)) return 1;
    const double ideal = fastest_share(lines_of(job, level, aggregators, 1));
    return ideal < 1 ? fastest_share(lines_of(job, level, aggregators, fan_in_efficiency)) : 1;
}

std::vector<std::int64_t> blocks_for(const std::vector<double>& shares, const std::vector<std::int64_t>& units) {
    constexpr std::int64_t most_times = 32;
    constexpr double good = 0.005;
    const std::int64_t unit = *std::max_element(units.begin(), units.end());
    std::vector<std::int64_t> best;
    double least = 2;
    for (std::int64_t total = unit; total <= most_times * unit && least > good; total += unit) {
        std::vector<std::int64_t> numbers;
        double sum = 0;
        for (std::size_t i = 0; i < shares.size(); ++i) {
            const double wanted = shares[i] * static_cast<double>(total) / static_cast<double>(units[i]);
            numbers.push_back(std::max<std::int64_t>(1, std::llround(wanted)));
            sum += static_cast<double>(numbers.back() * units[i]);
        }
        double error = 0;
        for (std::size_t i = 0; i < shares.size(); ++i)
            error = std::max(error, std::abs(static_cast<double>(numbers[i] * units[i]) / sum - shares[i]));
        if (error < least) least = error, best = std::move(numbers);
    }
    return best;
}

}  // namespace palmette::collectives
