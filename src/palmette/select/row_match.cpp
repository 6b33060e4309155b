#include "palmette/select/row_match.hpp"

#include <cmath>

#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"
#include "palmette/select/by_model.hpp"

namespace palmette::select {
namespace {

using base::cat;

/// `of`: the unit, in the singular.
std::string outside(std::int64_t value, std::int64_t low, std::int64_t high, const std::string& of) {
    const auto counted = [&](std::int64_t count) {
        return cat(count, " ", of, count == 1 ? "" : of.ends_with("ch") ? "es" : "s");
    };
    return value < low ? cat("for ", counted(low), " and more, here are ", value)
                       : cat("for up to ", counted(high), ", here are ", value);
}

std::string size_limit(const Row& row, std::int64_t bytes) {
    const bool any = row.min_bytes == 0 && row.max_bytes == INT64_MAX;
    if (bytes < 0) return any ? "" : "asks for sizes, which not all ranks know";
    const std::string here = cat(", here ", base::format_size(bytes));
    if (bytes < row.min_bytes) return cat("for ", base::format_size(row.min_bytes), " and more", here);
    return bytes > row.max_bytes ? cat("for up to ", base::format_size(row.max_bytes), here) : "";
}

std::string latency_limit(const Row& row, double latency_s) {
    const bool fast = std::isfinite(row.max_latency_s) && latency_s > row.max_latency_s;
    return cat("for a level of ", fast || row.min_latency_s <= 0 ? row.max_latency_s * 1e6 : row.min_latency_s * 1e6,
               " us and ", fast || row.min_latency_s <= 0 ? "less" : "more", ", here it is ",
               latency_s > 0 ? cat(latency_s * 1e6) : "unknown");
}

std::string rate_limit(const Row& row, double rate) {
    const bool slow = row.min_rate > 0 && rate < row.min_rate;
    return cat("for links of ", base::format_rate(slow ? row.min_rate : row.max_rate), " and ", slow ? "more" : "less",
               ", here it is ", rate > 0 ? base::format_rate(rate) : "unknown");
}

/// The first limit that fails, in the order in which a row is read: sizes first.
std::string failing_limit(const Row& row, const Job& job, std::int64_t bytes, const Surroundings& around,
                          bool& measurable) {
    if (std::string limit = size_limit(row, bytes); !limit.empty()) return limit;
    if (!row.mpi.empty() && row.mpi != around.mpi)
        return cat("for ", row.mpi, around.mpi.empty() ? ", and no MPI is named" : ", the MPI is " + around.mpi);
    const std::int32_t nodes = job.nodes().groups.count();
    if (nodes < row.min_nodes || nodes > row.max_nodes) return outside(nodes, row.min_nodes, row.max_nodes, "node");
    if (job.size() < row.min_ranks || job.size() > row.max_ranks)
        return outside(job.size(), row.min_ranks, row.max_ranks, "rank");
    const std::int32_t per_node = job.nodes().groups.largest();
    if (per_node < row.min_ranks_per_node || per_node > row.max_ranks_per_node)
        return outside(per_node, row.min_ranks_per_node, row.max_ranks_per_node, "rank") + " a node";
    if (!fits_switches(row, job)) return outside(switch_count(job), row.min_switches, row.max_switches, "switch");
    if (row.even_switches && *row.even_switches != has_even_switches(job))
        return *row.even_switches ? "for switches with about as many ranks each"
                                  : "for a switch with over twice as many ranks as another one";
    if (!fits_latency(row, job)) {
        measurable = slowest_latency(job) <= 0;
        return latency_limit(row, slowest_latency(job));
    }
    if (!fits_rate(row, job)) return rate_limit(row, job.nodes().slowest_edge_bytes_per_s);
    if (row.min_load > 0 && heaviest_load(job) < row.min_load) {
        measurable = true;
        return cat("for links of which other traffic takes ", 100 * row.min_load, " % and more, here it is ",
                   std::lround(100 * heaviest_load(job)), " %");
    }
    if (row.oversubscribed && *row.oversubscribed != around.oversubscribed)
        return *row.oversubscribed ? "for nodes with more ranks than cores" : "for nodes with a core for each rank";
    if (row.blocking && *row.blocking != around.blocking)
        return *row.blocking ? "for blocking calls" : "for nonblocking and persistent calls";
    if (row.scattered && *row.scattered != is_scattered(job))
        return *row.scattered ? "for scattered ranks, these are in topology order"
                              : "for ranks in topology order, these are scattered";
    return {};
}

}  // namespace

std::vector<RowMatch> match_rows(const Table& table, Function function, const Job& job, const plan::Request& request,
                                 const Surroundings& surroundings) {
    std::vector<RowMatch> out;
    for (std::size_t i = 0; i < table.rows().size(); ++i) {
        const Row& row = table.rows()[i];
        if (row.function != function) continue;
        RowMatch match{i, "", false};
        match.mismatch = failing_limit(row, job, request.block_bytes, surroundings, match.measurable);
        if (match.mismatch.empty() && row.algorithm)
            if (const auto reason = collectives::algorithm_named(request.collective, row.algorithm->name)
                                        .refuse(job, request, *row.algorithm))
                match.mismatch = cat(row.algorithm->name, " can't serve: ", *reason);
        if (match.mismatch.empty() && row.by_model && !best_by_model(job, request))
            match.mismatch = "the model has no candidate that can serve";
        out.push_back(match);
        if (match.mismatch.empty()) break;
    }
    return out;
}

}  // namespace palmette::select
