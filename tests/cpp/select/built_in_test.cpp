// The table that is compiled is the one in the file, and its reasons tell the loss that decided.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "palmette/base/error.hpp"
#include "palmette/base/text.hpp"
#include "palmette/select/table.hpp"

namespace palmette::select::built_in_tests {
namespace {

using testing::HasSubstr;

Table table_with(const char* row) {
    return Table::from_json(
        base::Json::parse(base::cat(R"({"format": "palmette-table", "version": 1, "rows": [)", row, "]}")));
}

TEST(BuiltIn, the_compiled_rows_are_those_of_the_file) {
    const Table read = Table::from_file(PALMETTE_SOURCE_DIR "/src/palmette/select/built_in.json");
    ASSERT_GT(read.rows().size(), 100u);
    EXPECT_EQ(Table::built_in().to_json().dump(1), read.to_json().dump(1));
}

TEST(BuiltIn, every_row_says_where_it_comes_from) {
    const auto& sources = Table::built_in().sources();
    EXPECT_GE(sources.size(), 5u);
    for (const Row& row : Table::built_in().rows())
        EXPECT_THAT(sources, testing::Contains(testing::Pair(row.source, testing::Not(testing::IsEmpty())))) << row.why;
}

TEST(BuiltIn, every_row_that_leaves_calls_to_the_mpi_for_their_time_tells_the_loss) {
    for (const Row& row : Table::built_in().rows()) {
        const bool is_timed = !row.algorithm && !row.by_model && row.source != "reason";
        EXPECT_EQ(row.mpi_ratio > 1, is_timed) << name_of(row.function) << ": " << row.why;
    }
}

TEST(BuiltIn, a_source_must_be_one_of_the_tables) {
    try {
        (void)table_with(R"({"function": "bcast", "algorithm": "linear", "source": "nowhere"})");
        FAIL();
    } catch (const base::Error& error) {
        EXPECT_STREQ(error.what(), "rows[0].source: \"nowhere\" is none of the table's sources");
    }
}

TEST(BuiltIn, a_reason_tells_the_ratio_that_decided_for_the_mpi) {
    const Table table = table_with(R"({"function": "bcast", "algorithm": "mpi", "mpi_ratio": 1.256, "why": "small"})");
    EXPECT_EQ(table.reason_of(0),
              "table row 0: small (palmette took up to 1.26 times as long where that was measured)");
    EXPECT_EQ(table_with(R"({"function": "bcast", "algorithm": "mpi", "why": "small"})").reason_of(0),
              "table row 0: small");
}

TEST(BuiltIn, a_ratio_stands_beside_the_mpi_only) {
    for (const char* row : {R"({"function": "bcast", "algorithm": "linear", "mpi_ratio": 1.2})",
                            R"({"function": "bcast", "algorithm": "model", "mpi_ratio": 1.2})",
                            R"({"function": "bcast", "algorithm": "mpi", "mpi_ratio": 0})",
                            R"({"function": "bcast", "algorithm": "mpi", "mpi_ratio": -1})"}) {
        try {
            (void)table_with(row);
            FAIL() << row;
        } catch (const base::Error& error) {
            EXPECT_THAT(error.what(), HasSubstr("rows[0].mpi_ratio: ")) << row;
        }
    }
}

}  // namespace
}  // namespace palmette::select::built_in_tests
