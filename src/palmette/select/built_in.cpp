// The built-in decision table: first choices, measured on an emulated cluster (docs/decisions/0005).
#include "palmette/base/never_destroyed.hpp"
#include "palmette/select/stored_row.hpp"

namespace palmette::select {
namespace {

Row unpacked(const StoredRow& stored) {
    Row row;
    row.function = stored.function;
    row.min_bytes = stored.min_bytes;
    row.max_bytes = stored.max_bytes;
    row.min_ranks = stored.min_ranks;
    row.max_ranks = stored.max_ranks;
    row.min_nodes = stored.min_nodes;
    row.max_nodes = stored.max_nodes;
    row.min_ranks_per_node = stored.min_ranks_per_node;
    row.max_ranks_per_node = stored.max_ranks_per_node;
    row.min_switches = stored.min_switches;
    row.max_switches = stored.max_switches;
    row.even_switches = stored.even_switches;
    row.min_latency_s = stored.min_latency_s;
    row.max_latency_s = stored.max_latency_s;
    row.min_rate = stored.min_rate;
    row.max_rate = stored.max_rate;
    row.min_load = stored.min_load;
    row.mpi = stored.mpi;
    row.scattered = stored.scattered;
    row.oversubscribed = stored.oversubscribed;
    row.blocking = stored.blocking;
    row.by_model = stored.algorithm == "model";
    if (!row.by_model && stored.algorithm != "mpi") row.algorithm = Spec::parse(stored.algorithm);
    row.mpi_ratio = stored.mpi_ratio;
    row.why = stored.why;
    row.source = stored.source;
    return row;
}

}  // namespace

std::uint64_t Table::built_in_digest() { return stored_rows_digest; }

const Table& Table::built_in() {
    static const base::NeverDestroyed table([] {
        std::vector<Row> rows;
        rows.reserve(stored_row_count);
        for (std::size_t i = 0; i < stored_row_count; ++i) rows.push_back(unpacked(stored_rows[i]));
        std::vector<std::pair<std::string, std::string>> sources;
        for (std::size_t i = 0; i < stored_source_count; ++i)
            sources.emplace_back(stored_sources[i].name, stored_sources[i].text);
        return Table(std::move(rows), std::move(sources));
    }());
    return *table;
}

}  // namespace palmette::select
