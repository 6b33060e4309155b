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
using base::Json;

struct Known {
    const char* name;
    Collective collective;
};
constexpr std::array<Known, all_function_count> functions{{
    {"gather", Collective::gather},
    {"scatter", Collective::scatter},
    {"allgather", Collective::allgather},
    {"gatherv", Collective::gather},
    {"scatterv", Collective::scatter},
    {"allgatherv", Collective::allgather},
    {"bcast", Collective::bcast},
    {"reduce", Collective::reduce},
    {"allreduce", Collective::allreduce},
    {"reduce_scatter", Collective::reduce_scatter},
    {"reduce_scatter_block", Collective::reduce_scatter},
    {"alltoall", Collective::alltoall},
    {"alltoallv", Collective::alltoall},
    {"alltoallw", Collective::alltoall},
    {"barrier", Collective::barrier},
    {"scan", Collective::scan},
    {"exscan", Collective::exscan},
    {"neighbor_allgather", Collective::composed},
    {"neighbor_allgatherv", Collective::composed},
    {"neighbor_alltoall", Collective::composed},
    {"neighbor_alltoallv", Collective::composed},
    {"neighbor_alltoallw", Collective::composed},
}};

std::int64_t bytes_from(const Json& value, const std::string& where) {
    return value.kind() == Json::Kind::string ? base::parse_size(value.string(where)) : value.integer(where);
}

Row read_row(const Json& json, const std::string& where) {
    Row row;
    bool has_function = false;
    for (const auto& [key, value] : json.members(where)) {
        const std::string at = where + "." + key;
        if (key == "function") {
            row.function = function_named(value.string(at));
            has_function = true;
        } else if (key == "min_bytes") {
            row.min_bytes = bytes_from(value, at);
        } else if (key == "max_bytes") {
            row.max_bytes = bytes_from(value, at);
        } else if (key == "min_ranks") {
            row.min_ranks = static_cast<std::int32_t>(value.integer(at));
        } else if (key == "max_ranks") {
            row.max_ranks = static_cast<std::int32_t>(value.integer(at));
        } else if (key == "min_nodes") {
            row.min_nodes = static_cast<std::int32_t>(value.integer(at));
        } else if (key == "max_nodes") {
            row.max_nodes = static_cast<std::int32_t>(value.integer(at));
        } else if (key == "min_switches") {
            row.min_switches = static_cast<std::int32_t>(value.integer(at));
        } else if (key == "max_switches") {
            row.max_switches = static_cast<std::int32_t>(value.integer(at));
        } else if (key == "even_switches") {
            row.even_switches = value.boolean(at);
        } else if (key == "min_latency") {
            row.min_latency_s = base::parse_duration(value.string(at));
        } else if (key == "max_latency") {
            row.max_latency_s = base::parse_duration(value.string(at));
        } else if (key == "min_load") {
            row.min_load = value.number(at);
            if (row.min_load < 0 || row.min_load >= 1) fail(at, ": expected a share from 0 to below 1, as in 0.3");
        } else if (key == "mpi") {
            row.mpi = value.string(at);
            if (row.mpi != "mpich" && row.mpi != "openmpi" && row.mpi != "impi")
                fail(at, ": expected mpich, openmpi or impi, found '", row.mpi, "'");
        } else if (key == "scattered") {
            row.scattered = value.boolean(at);
        } else if (key == "oversubscribed") {
            row.oversubscribed = value.boolean(at);
        } else if (key == "blocking") {
            row.blocking = value.boolean(at);
        } else if (key == "algorithm") {
            row.by_model = value.string(at) == "model";
            if (!row.by_model && value.string(at) != "mpi") row.algorithm = Spec::parse(value.string(at));
        } else if (key == "mpi_ratio") {
            row.mpi_ratio = value.number(at);
            if (!(row.mpi_ratio > 0)) fail(at, ": expected palmette's time over the MPI's, as in 1.2");
        } else if (key == "why") {
            row.why = value.string(at);
        } else if (key == "source") {
            row.source = value.string(at);
        } else if (key == "crowded") {
            fail(at, ": this key is \"oversubscribed\" now");
        } else {
            fail(at,
                 ": unknown key; there are function, min_bytes, max_bytes, min_ranks, max_ranks, min_nodes, max_nodes, "
                 "min_switches, max_switches, even_switches, min_latency, max_latency, min_load, mpi, scattered, "
                 "oversubscribed, blocking, algorithm, mpi_ratio, why and source");
        }
    }
    if (!has_function) fail(where, ".function: missing");
    if (row.mpi_ratio > 0 && (row.algorithm || row.by_model))
        fail(where, ".mpi_ratio: only valid with \"algorithm\": \"mpi\"");
    if (row.algorithm) {
        // An invalid spec is reported on loading, not in the middle of a run.
        const Collective collective = collective_of(row.function);
        try {
            (void)collectives::algorithm_named(collective, row.algorithm->name)
                .refuse(Job::flat(2), {collective, plan::Rank{0}, 1}, *row.algorithm);
        } catch (const base::Error& error) {
            fail(where, ".algorithm: ", error.what());
        }
    }
    return row;
}

/// In the syntax of parse_duration.
std::string microseconds(double seconds) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%.12gus", seconds * 1e6);
    return text.data();
}

/// The groups of the level `leaf`; null where the job spans only one, or the level is unknown.
const topology::Partition* switches_of(const Job& job) {
    const auto leaf = job.find_level("leaf");
    return leaf ? &job.levels()[*leaf].groups : nullptr;
}

bool matches_but_for_size(const Row& row, Function function, const Job& job, const Surroundings& around) {
    if (row.function != function || (!row.mpi.empty() && row.mpi != around.mpi)) return false;
    const std::int32_t nodes = job.nodes().groups.count();
    if (job.size() < row.min_ranks || job.size() > row.max_ranks || nodes < row.min_nodes || nodes > row.max_nodes)
        return false;
    if (!fits_switches(row, job)) return false;
    if (row.even_switches && *row.even_switches != has_even_switches(job)) return false;
    if ((row.oversubscribed && *row.oversubscribed != around.oversubscribed) ||
        (row.blocking && *row.blocking != around.blocking))
        return false;
    if (!fits_latency(row, job)) return false;
    if (row.min_load > 0 && heaviest_load(job) < row.min_load) return false;
    return !row.scattered || *row.scattered == is_scattered(job);
}

/// Assumed costs rank algorithms too coarsely to override the MPI.
bool is_calibrated(const Job& job) {
    return std::any_of(job.levels().begin(), job.levels().end(), [](const topology::JobLevel& level) {
        return level.costs.source == topology::CostSource::calibrated;
    });
}

bool any_size(const Row& row) { return row.min_bytes == 0 && row.max_bytes == INT64_MAX; }

bool fits_size(const Row& row, std::int64_t bytes) {
    return bytes < 0 ? any_size(row) : bytes >= row.min_bytes && bytes <= row.max_bytes;
}

/// The first `count` functions.
Function named_among(std::size_t count, std::string_view name) {
    std::string known;
    for (std::size_t i = 0; i < count; ++i) {
        if (name == functions[i].name) return static_cast<Function>(i);
        known += (i == 0 ? "" : i + 1 == count ? " and " : ", ") + std::string(functions[i].name);
    }
    fail("'", name, "' is no collective that palmette serves: there are ", known);
}

}  // namespace

const char* name_of(Function function) { return functions[static_cast<std::size_t>(function)].name; }

Function function_named(std::string_view name) {
    if (name.starts_with("neighbor_"))
        fail("'", name, "': tables don't choose for neighbourhood collectives; 'palmette run --force ", name,
             "=direct' and the like do");
    return named_among(function_count, name);
}
Function any_function_named(std::string_view name) { return named_among(all_function_count, name); }

Collective collective_of(Function function) { return functions[static_cast<std::size_t>(function)].collective; }

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

Table Table::from_json(const Json& document) {
    const Json* format = document.find("format");
    if (!format || format->string("format") != "palmette-table")
        fail("format: expected \"palmette-table\"; is this a decision table?");
    if (const Json* version = document.find("version"); !version || version->integer("version") != 1)
        fail("version: this palmette reads version 1");
    const Json* rows = document.find("rows");
    if (!rows) fail("rows: missing");
    Table table;
    if (const Json* sources = document.find("sources"))
        for (const auto& [name, text] : sources->members("sources"))
            table.sources_.emplace_back(name, text.string(cat("sources.", name)));
    for (const Json& item : rows->items("rows")) {
        const std::string where = cat("rows[", table.rows_.size(), "]");
        Row row = read_row(item, where);
        const auto has_its_name = [&](const auto& source) { return source.first == row.source; };
        if (!row.source.empty() && std::ranges::none_of(table.sources_, has_its_name))
            fail(where, ".source: \"", row.source, "\" is none of the table's sources");
        table.rows_.push_back(std::move(row));
    }
    return table;
}

Table Table::from_file(const std::string& path) {
    const Json document = Json::parse_file(path);
    try {
        return from_json(document);
    } catch (const base::Error& error) {
        fail(path, ": ", error.what());
    }
}

Json Table::to_json() const {
    Json out = Json::object();
    out.set("format", "palmette-table").set("version", 1);
    if (!sources_.empty()) {
        Json sources = Json::object();
        for (const auto& [name, text] : sources_) sources.set(name, text);
        out.set("sources", std::move(sources));
    }
    Json rows = Json::array();
    for (const Row& row : rows_) {
        Json item = Json::object();
        item.set("function", name_of(row.function));
        if (row.min_bytes > 0) item.set("min_bytes", base::format_size(row.min_bytes));
        if (row.max_bytes < INT64_MAX) item.set("max_bytes", base::format_size(row.max_bytes));
        if (row.min_ranks > 2) item.set("min_ranks", row.min_ranks);
        if (row.max_ranks < INT32_MAX) item.set("max_ranks", row.max_ranks);
        if (row.min_nodes > 1) item.set("min_nodes", row.min_nodes);
        if (row.max_nodes < INT32_MAX) item.set("max_nodes", row.max_nodes);
        if (row.min_switches > 1) item.set("min_switches", row.min_switches);
        if (row.max_switches < INT32_MAX) item.set("max_switches", row.max_switches);
        if (row.even_switches) item.set("even_switches", *row.even_switches);
        if (row.min_latency_s > 0) item.set("min_latency", microseconds(row.min_latency_s));
        if (std::isfinite(row.max_latency_s)) item.set("max_latency", microseconds(row.max_latency_s));
        if (row.min_load > 0) item.set("min_load", row.min_load);
        if (!row.mpi.empty()) item.set("mpi", row.mpi);
        if (row.scattered) item.set("scattered", *row.scattered);
        if (row.oversubscribed) item.set("oversubscribed", *row.oversubscribed);
        if (row.blocking) item.set("blocking", *row.blocking);
        item.set("algorithm", row.algorithm ? row.algorithm->text() : row.by_model ? "model" : "mpi");
        if (row.mpi_ratio > 0) item.set("mpi_ratio", row.mpi_ratio);
        if (!row.why.empty()) item.set("why", row.why);
        if (!row.source.empty()) item.set("source", row.source);
        rows.push(std::move(item));
    }
    out.set("rows", std::move(rows));
    return out;
}

Choice Table::choose(Function function, const Job& job, const plan::Request& request,
                     const Surroundings& surroundings) const {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const Row& row = rows_[i];
        if (!fits_size(row, request.block_bytes) || !matches_but_for_size(row, function, job, surroundings)) continue;
        if (row.algorithm &&
            collectives::algorithm_named(request.collective, row.algorithm->name).refuse(job, request, *row.algorithm))
            continue;
        std::string reason = reason_of(i);
        if (!row.by_model) return {row.algorithm, std::move(reason)};
        if (auto best = best_by_model(job, request))
            return {std::move(best->spec), cat(reason, "; the model gives it ", base::format_duration(best->seconds))};
    }
    if (is_calibrated(job))
        if (auto best = best_by_model(job, request))
            return {std::move(best->spec), cat("no table row fits; this candidate has the shortest estimated time, ",
                                               base::format_duration(best->seconds))};
    return {std::nullopt, "no table row fits"};
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
    return sizes_unknown(function) || !is_calibrated(job);
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
