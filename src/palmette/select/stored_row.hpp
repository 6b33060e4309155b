// Rows of the built-in decision table as constant data, compiled in: ranks parse nothing at startup.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "palmette/select/table.hpp"

namespace palmette::select {

/// A Row in read-only memory. The array is generated from built_in.json at build time (tools/table_rows.cpp).
struct StoredRow {
    Function function;
    std::int64_t min_bytes, max_bytes;
    std::int32_t min_ranks, max_ranks, min_nodes, max_nodes, min_ranks_per_node, max_ranks_per_node, min_switches,
        max_switches;
    std::optional<bool> even_switches;
    double min_latency_s, max_latency_s, min_rate, max_rate, min_load;
    std::string_view mpi;
    std::optional<bool> scattered, oversubscribed, blocking;
    std::string_view algorithm;  ///< "mpi", "model", or the text of a Spec
    double mpi_ratio;
    std::string_view why;
    std::string_view source;
};

/// A key of the table's sources, and its text.
struct StoredSource {
    std::string_view name, text;
};

/// Defined in the generated file.
extern const StoredRow* const stored_rows;
extern const std::size_t stored_row_count;
extern const StoredSource* const stored_sources;
extern const std::size_t stored_source_count;
/// Hash of the table.
extern const std::uint64_t stored_rows_digest;

}  // namespace palmette::select
