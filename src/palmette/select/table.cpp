#include "palmette/select/table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"
#include "palmette/select/by_model.hpp"

namespace palmette::select {
namespace {

using base::cat;
using base::fail;

/// The groups of the level `leaf`; null where the job spans only one, or the level is unknown.
const topology::Partition* switches_of(const Job& job) {
    const auto leaf = job.find_level("leaf");
    return leaf ? &job.levels()[*leaf].groups : nullptr;
}

bool matches_but_for_size(const Row& row, Function function, const Job& job, const Surroundings& around) {
    if (row.function != function || (!row.mpi.empty() && row.mpi != around.mpi)) return false;
    const std::int32_t nodes = job.nodes().groups.count();
    const std::int32_t per_node = job.nodes().groups.largest();
    if (job.size() < row.min_ranks || job.size() > row.max_ranks || nodes < row.min_nodes || nodes > row.max_nodes ||
        per_node < row.min_ranks_per_node || per_node > row.max_ranks_per_node)
        return false;
    if (!fits_switches(row, job)) return false;
    if (row.even_switches && *row.even_switches != has_even_switches(job)) return false;
    if ((row.oversubscribed && *row.oversubscribed != around.oversubscribed) ||
        (row.blocking && *row.blocking != around.blocking))
        return false;
    if (!fits_latency(row, job) || !fits_rate(row, job)) return false;
    if (row.min_load > 0 && heaviest_load(job) < row.min_load) return false;
    return !row.scattered || *row.scattered == is_scattered(job);
}

/// Whether latencies are known where the job's messages cross nodes, or cores on a single node.
bool has_known_costs(const Job& job) {
    if (job.nodes().groups.count() > 1) return slowest_latency(job) > 0;
    return job.inside().latency_s > 0 || std::any_of(job.levels().begin(), job.levels().end(),
                                                     [](const auto& level) { return level.costs.latency_s > 0; });
}

/// Whether the model may choose where no row fits.
bool may_use_model(const Job& job, const Surroundings& around) { return around.compared || has_known_costs(job); }

Basis basis_of(const Job& job) { return has_known_costs(job) ? Basis::costs : Basis::assumptions; }

bool any_size(const Row& row) { return row.min_bytes == 0 && row.max_bytes == INT64_MAX; }

bool fits_size(const Row& row, std::int64_t bytes) {
    return bytes < 0 ? any_size(row) : bytes >= row.min_bytes && bytes <= row.max_bytes;
}

/// The first `count` functions.
Function named_among(std::size_t count, std::string_view name) {
    std::string known;
    for (std::size_t i = 0; i < count; ++i) {
        if (name == function_rows[i].name) return static_cast<Function>(i);
        known += (i == 0 ? "" : i + 1 == count ? " and " : ", ") + std::string(function_rows[i].name);
    }
    fail("'", name, "' is no collective that palmette serves: there are ", known);
}

}  // namespace

const char* name_of(Function function) { return function_rows[static_cast<std::size_t>(function)].name; }

Function function_named(std::string_view name) {
    if (name.starts_with("neighbor_"))
        fail("'", name, "': tables don't choose for neighbourhood collectives; 'palmette run --force ", name,
             "=direct' and the like do");
    return named_among(function_count, name);
}
Function any_function_named(std::string_view name) { return named_among(all_function_count, name); }

Collective collective_of(Function function) { return function_rows[static_cast<std::size_t>(function)].collective; }

bool sizes_unknown(Function function) {
    return function == Function::gatherv || function == Function::scatterv || function == Function::alltoallv ||
           function == Function::alltoallw || function == Function::neighbor_allgatherv ||
           function == Function::neighbor_alltoallv || function == Function::neighbor_alltoallw;
}

bool sizes_alike(Function function) {
    return !sizes_unknown(function) && function != Function::allgatherv && function != Function::reduce_scatter;
}

bool is_scattered(const Job& job) { return !job.in_topology_order(); }

std::int32_t switch_count(const Job& job) {
    const topology::Partition* switches = switches_of(job);
    return switches ? switches->count() : 1;
}

bool fits_switches(const Row& row, const Job& job) {
    if (row.min_switches <= 1 && row.max_switches == INT32_MAX) return true;
    const std::int32_t switches = switch_count(job);
    return row.min_switches <= switches && switches <= row.max_switches;
}

bool has_even_switches(const Job& job) {
    const topology::Partition* switches = switches_of(job);
    return !switches || switches->largest() <= 2 * switches->smallest();
}

bool fits_latency(const Row& row, const Job& job) {
    if (row.min_latency_s > 0 && slowest_latency(job) < row.min_latency_s) return false;
    if (!std::isfinite(row.max_latency_s)) return true;
    const double latency_s = slowest_latency(job);
    return latency_s > 0 && latency_s <= row.max_latency_s;
}

bool fits_rate(const Row& row, const Job& job) {
    const double rate = job.nodes().slowest_edge_bytes_per_s;
    if (row.min_rate > 0 && rate < row.min_rate) return false;
    return !std::isfinite(row.max_rate) || (rate > 0 && rate <= row.max_rate);
}

double slowest_latency(const Job& job) {
    double slowest = 0;
    for (const topology::JobLevel& level : job.levels()) {
        slowest = std::max(slowest, level.costs.latency_s);
        if (level.name == "node") break;  // intra-node levels say nothing about the network
    }
    return slowest;
}

double heaviest_load(const Job& job) {
    double heaviest = 0;
    for (const topology::JobLevel& level : job.levels()) {
        if (level.load.values().empty()) heaviest = std::max(heaviest, level.load[0]);
        for (const double load : level.load.values()) heaviest = std::max(heaviest, load);
    }
    return heaviest;
}

Choice Table::choose(Function function, const Job& job, const plan::Request& request,
                     const Surroundings& surroundings) const {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const Row& row = rows_[i];
        if (!fits_size(row, request.block_bytes) || !matches_but_for_size(row, function, job, surroundings)) continue;
        if (row.algorithm &&
            collectives::algorithm_named(request.collective, row.algorithm->name).refuse(job, request, *row.algorithm))
            continue;
        if (row.algorithm && surroundings.lost &&
            std::ranges::find(*surroundings.lost, row.algorithm->text()) != surroundings.lost->end())
            continue;
        std::string reason = reason_of(i);
        if (!row.by_model) return {row.algorithm, std::move(reason)};
        if (auto best = best_by_model(job, request, surroundings.lost, surroundings.plays))
            return {std::move(best->spec), cat(reason, "; the model gives it ", base::format_duration(best->seconds)),
                    basis_of(job)};
    }
    if (!may_use_model(job, surroundings)) return {std::nullopt, "no table row fits, and no costs are known"};
    auto best = best_by_model(job, request, surroundings.lost, surroundings.plays);
    if (!best) return {std::nullopt, "no table row fits, and the model has no candidate that can serve"};
    const Basis basis = basis_of(job);
    return {std::move(best->spec),
            cat("no table row fits; this candidate has the shortest ", best->played ? "simulated" : "estimated",
                " time, ", base::format_duration(best->seconds), basis == Basis::costs ? "" : ", from assumed costs"),
            basis};
}

std::string Table::reason_of(std::size_t row) const {
    const std::string& why = rows_[row].why;
    const double ratio = rows_[row].mpi_ratio;
    std::string loss;
    if (ratio > 0) {
        std::array<char, 80> text{};
        std::snprintf(text.data(), text.size(), " (palmette took up to %.2f times as long where that was measured)",
                      ratio);
        loss = text.data();
    }
    return cat("table row ", row, why.empty() ? "" : ": ", why, loss);
}

bool Table::always_mpi(Function function, const Job& job, const Surroundings& surroundings) const {
    for (const Row& row : rows_) {
        if (!matches_but_for_size(row, function, job, surroundings)) continue;
        if (row.algorithm || row.by_model) return false;
        if (any_size(row)) return true;
    }
    return sizes_unknown(function) || !may_use_model(job, surroundings);
}

std::vector<Table::Range> Table::mpi_ranges(Function function, const Job& job, const Surroundings& surroundings) const {
    std::vector<Range> ranges;
    // Sizes that no row above decides. A row whose algorithm may refuse the job counts as deciding.
    std::vector<Range> open{{1, INT64_MAX, 0}};
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const Row& row = rows_[i];
        if (!matches_but_for_size(row, function, job, surroundings)) continue;
        std::vector<Range> rest;
        for (const Range& range : open) {
            const Range covered{std::max(range.from, row.min_bytes), std::min(range.to, row.max_bytes), i};
            if (covered.from > covered.to) {
                rest.push_back(range);
                continue;
            }
            if (!row.algorithm && !row.by_model) ranges.push_back(covered);
            if (range.from < covered.from) rest.push_back({range.from, covered.from - 1, 0});
            if (covered.to < range.to) rest.push_back({covered.to + 1, range.to, 0});
        }
        open = std::move(rest);
    }
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.from < b.from; });
    return ranges;
}

}  // namespace palmette::select
