// Writes the rows of a decision table as C++: table_rows TABLE_JSON OUTPUT_CPP. Run by the build, which an invalid row
// fails with a message.
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "palmette/base/hash.hpp"
#include "palmette/base/json.hpp"
#include "palmette/select/table.hpp"

namespace {

using palmette::select::Row;

std::string quoted(const std::string& text) { return palmette::base::Json(text).dump(); }

std::string number(double value) {
    if (std::isinf(value)) return "std::numeric_limits<double>::infinity()";
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

std::string number(std::int64_t value) { return value == INT64_MAX ? "INT64_MAX" : std::to_string(value); }

std::string number(std::int32_t value) { return value == INT32_MAX ? "INT32_MAX" : std::to_string(value); }

std::string choice(const std::optional<bool>& value) { return !value ? "std::nullopt" : *value ? "true" : "false"; }

void write(std::ostream& out, const Row& row) {
    out << "    {Function::" << palmette::select::name_of(row.function);
    for (const std::int64_t value : {row.min_bytes, row.max_bytes}) out << ", " << number(value);
    for (const std::int32_t value : {row.min_ranks, row.max_ranks, row.min_nodes, row.max_nodes, row.min_ranks_per_node,
                                     row.max_ranks_per_node, row.min_switches, row.max_switches})
        out << ", " << number(value);
    out << ", " << choice(row.even_switches);
    for (const double value : {row.min_latency_s, row.max_latency_s, row.min_rate, row.max_rate, row.min_load})
        out << ", " << number(value);
    out << ", " << quoted(row.mpi);
    for (const std::optional<bool>& value : {row.scattered, row.oversubscribed, row.blocking})
        out << ", " << choice(value);
    out << ", "
        << quoted(row.algorithm  ? row.algorithm->text()
                  : row.by_model ? "model"
                                 : "mpi")
        << ", " << number(row.mpi_ratio) << ", " << quoted(row.why) << ", " << quoted(row.source) << "},\n";
}

std::uint64_t digest_of(const std::string& text) {
    std::uint64_t hash = palmette::base::fnv1a_start;
    palmette::base::hash_append(hash, text);
    return hash;
}

}  // namespace

int main(int count, char** words) {
    if (count != 3) {
        std::fputs("usage: table_rows TABLE_JSON OUTPUT_CPP\n", stderr);
        return 2;
    }
    try {
        const auto table = palmette::select::Table::from_file(words[1]);
        std::ofstream out(words[2]);
        out << "// Made by tools/table_rows.cpp from src/palmette/select/built_in.json: change that file.\n"
               "#include \"palmette/select/stored_row.hpp\"\n\n#include <limits>\n\nnamespace palmette::select {\n"
               "namespace {\n\nconstexpr StoredRow rows[] = {\n";
        for (const Row& row : table.rows()) write(out, row);
        out << "};\n\nconstexpr StoredSource sources[] = {\n";
        for (const auto& [name, text] : table.sources())
            out << "    {" << quoted(name) << ", " << quoted(text) << "},\n";
        out << "};\n\n}  // namespace\n\nconst StoredRow* const stored_rows = rows;\nconst std::size_t "
               "stored_row_count = "
            << table.rows().size()
            << ";\nconst StoredSource* const stored_sources = sources;\nconst std::size_t stored_source_count = "
            << table.sources().size()
            << ";\nconst std::uint64_t stored_rows_digest = " << digest_of(table.to_json().dump())
            << "u;\n\n}  // namespace palmette::select\n";
        out.close();
        if (!out) {
            std::fprintf(stderr, "%s: can't be written\n", words[2]);
            return 1;
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
