// Decision tables as JSON.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"
#include "palmette/select/table.hpp"

namespace palmette::select {
namespace {

using base::cat;
using base::fail;
using base::Json;

std::int64_t bytes_from(const Json& value, const std::string& where) {
    return value.kind() == Json::Kind::string ? base::parse_size(value.string(where)) : value.integer(where);
}

/// A limit on the jobs that a row holds for, as rows and sources have them. False: `key` is none.
bool read_limit(Row& row, const std::string& key, const Json& value, const std::string& at) {
    const auto count = [&] { return static_cast<std::int32_t>(value.integer(at)); };
    if (key == "min_ranks") {
        row.min_ranks = count();
    } else if (key == "max_ranks") {
        row.max_ranks = count();
    } else if (key == "min_nodes") {
        row.min_nodes = count();
    } else if (key == "max_nodes") {
        row.max_nodes = count();
    } else if (key == "min_ranks_per_node") {
        row.min_ranks_per_node = count();
    } else if (key == "max_ranks_per_node") {
        row.max_ranks_per_node = count();
    } else if (key == "min_switches") {
        row.min_switches = count();
    } else if (key == "max_switches") {
        row.max_switches = count();
    } else if (key == "min_latency") {
        row.min_latency_s = base::parse_duration(value.string(at));
    } else if (key == "max_latency") {
        row.max_latency_s = base::parse_duration(value.string(at));
    } else if (key == "min_rate") {
        row.min_rate = base::parse_rate(value.string(at));
    } else if (key == "max_rate") {
        row.max_rate = base::parse_rate(value.string(at));
    } else {
        return false;
    }
    return true;
}

/// Narrows the limits of a row to those of the measurement that it comes from.
void restrict_to(Row& row, const Row& shape) {
    row.min_ranks = std::max(row.min_ranks, shape.min_ranks);
    row.max_ranks = std::min(row.max_ranks, shape.max_ranks);
    row.min_nodes = std::max(row.min_nodes, shape.min_nodes);
    row.max_nodes = std::min(row.max_nodes, shape.max_nodes);
    row.min_ranks_per_node = std::max(row.min_ranks_per_node, shape.min_ranks_per_node);
    row.max_ranks_per_node = std::min(row.max_ranks_per_node, shape.max_ranks_per_node);
    row.min_switches = std::max(row.min_switches, shape.min_switches);
    row.max_switches = std::min(row.max_switches, shape.max_switches);
    row.min_latency_s = std::max(row.min_latency_s, shape.min_latency_s);
    row.max_latency_s = std::min(row.max_latency_s, shape.max_latency_s);
    row.min_rate = std::max(row.min_rate, shape.min_rate);
    row.max_rate = std::min(row.max_rate, shape.max_rate);
}

/// A source of rows: its text, and the limits of what was measured.
struct Source {
    std::string name, text;
    Row shape;
};

Source read_source(const std::string& name, const Json& value) {
    const std::string where = cat("sources.", name);
    Source out{name, "", {}};
    if (value.kind() == Json::Kind::string) {
        out.text = value.string(where);
        return out;
    }
    for (const auto& [key, item] : value.members(where)) {
        const std::string at = where + "." + key;
        if (key == "text")
            out.text = item.string(at);
        else if (!read_limit(out.shape, key, item, at))
            fail(at,
                 ": unknown key; there are text, min_ranks, max_ranks, min_nodes, max_nodes, min_ranks_per_node, "
                 "max_ranks_per_node, min_switches, max_switches, min_latency, max_latency, min_rate and max_rate");
    }
    return out;
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
        } else if (key == "even_switches") {
            row.even_switches = value.boolean(at);
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
        } else if (!read_limit(row, key, value, at)) {
            fail(at,
                 ": unknown key; there are function, min_bytes, max_bytes, min_ranks, max_ranks, min_nodes, max_nodes, "
                 "min_ranks_per_node, max_ranks_per_node, min_switches, max_switches, even_switches, min_latency, "
                 "max_latency, min_rate, max_rate, min_load, mpi, scattered, oversubscribed, blocking, algorithm, "
                 "mpi_ratio, why and source");
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

/// A duration in the syntax of parse_duration.
std::string microseconds(double seconds) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%.12gus", seconds * 1e6);
    return text.data();
}

/// A rate in the syntax of parse_rate.
std::string bits_per_second(double bytes_per_s) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%.12gMbit/s", bytes_per_s * 8e-6);
    return text.data();
}

}  // namespace

Table Table::from_json(const Json& document) {
    const Json* format = document.find("format");
    if (!format || format->string("format") != "palmette-table")
        fail("format: expected \"palmette-table\"; is this a decision table?");
    if (const Json* version = document.find("version"); !version || version->integer("version") != 1)
        fail("version: this palmette reads version 1");
    const Json* rows = document.find("rows");
    if (!rows) fail("rows: missing");
    Table table;
    std::vector<Source> sources;
    if (const Json* given = document.find("sources"))
        for (const auto& [name, value] : given->members("sources")) sources.push_back(read_source(name, value));
    for (const Source& source : sources) table.sources_.emplace_back(source.name, source.text);
    for (const Json& item : rows->items("rows")) {
        const std::string where = cat("rows[", table.rows_.size(), "]");
        Row row = read_row(item, where);
        if (!row.source.empty()) {
            const auto source = std::ranges::find(sources, row.source, &Source::name);
            if (source == sources.end()) fail(where, ".source: \"", row.source, "\" is none of the table's sources");
            restrict_to(row, source->shape);
        }
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
        if (row.min_ranks_per_node > 1) item.set("min_ranks_per_node", row.min_ranks_per_node);
        if (row.max_ranks_per_node < INT32_MAX) item.set("max_ranks_per_node", row.max_ranks_per_node);
        if (row.min_switches > 1) item.set("min_switches", row.min_switches);
        if (row.max_switches < INT32_MAX) item.set("max_switches", row.max_switches);
        if (row.even_switches) item.set("even_switches", *row.even_switches);
        if (row.min_latency_s > 0) item.set("min_latency", microseconds(row.min_latency_s));
        if (std::isfinite(row.max_latency_s)) item.set("max_latency", microseconds(row.max_latency_s));
        if (row.min_rate > 0) item.set("min_rate", bits_per_second(row.min_rate));
        if (std::isfinite(row.max_rate)) item.set("max_rate", bits_per_second(row.max_rate));
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

}  // namespace palmette::select
