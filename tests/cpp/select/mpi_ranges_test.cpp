// Which sizes need no look at the table, since they are the MPI's anyway.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "palmette/base/text.hpp"
#include "palmette/select/table.hpp"
#include "support/jobs.hpp"

namespace palmette::select {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;

Table table_with(const char* rows) {
    return Table::from_json(
        base::Json::parse(base::cat(R"({"format": "palmette-table", "version": 1, "rows": [)", rows, "]}")));
}

TEST(MpiRanges, rows_above_cut_out_of_a_range_what_they_have_an_answer_for) {
    const Table table = table_with(R"(
        {"function": "bcast", "min_bytes": 100, "max_bytes": 199, "algorithm": "linear", "why": "a"},
        {"function": "bcast", "min_bytes": "1K", "algorithm": "mpi", "why": "b"},
        {"function": "bcast", "mpi": "openmpi", "max_bytes": 9, "algorithm": "linear", "why": "c"},
        {"function": "bcast", "max_bytes": 300, "algorithm": "mpi", "why": "d"},
        {"function": "gather", "algorithm": "mpi", "why": "e"})");
    const Job job = test::job_on("2node:2core");
    EXPECT_THAT(table.mpi_ranges(Function::bcast, job, {"mpich"}),
                ElementsAre(FieldsAre(1, 99, 3), FieldsAre(200, 300, 3), FieldsAre(1024, INT64_MAX, 1)));
    EXPECT_THAT(table.mpi_ranges(Function::bcast, job, {"openmpi"}),
                ElementsAre(FieldsAre(10, 99, 3), FieldsAre(200, 300, 3), FieldsAre(1024, INT64_MAX, 1)));
    EXPECT_THAT(table.mpi_ranges(Function::scatter, job, {"mpich"}), ElementsAre());
}

TEST(MpiRanges, the_built_in_table_chooses_nothing_in_them) {
    for (const char* machine :
         {"2core", "2node:8core", "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core", "8leaf:8node:16core"})
        for (const char* mpi : {"mpich", "openmpi", "impi", "another"})
            for (std::size_t f = 0; f < function_count; ++f) {
                const auto function = static_cast<Function>(f);
                if (sizes_unknown(function)) continue;
                const Job job = test::job_on(machine);
                const Surroundings around{mpi};
                for (const auto& [from, to, row] : Table::built_in().mpi_ranges(function, job, around))
                    for (const std::int64_t bytes : {from, from / 2 + to / 2, to}) {
                        plan::Request request;
                        request.collective = collective_of(function);
                        request.block_bytes = bytes;
                        for (const bool shared : {false, true}) {
                            request.shared_memory = shared;
                            EXPECT_FALSE(Table::built_in().choose(function, job, request, around).algorithm)
                                << machine << ' ' << mpi << ' ' << name_of(function) << ' ' << bytes << ' ' << row;
                        }
                    }
            }
}

}  // namespace
}  // namespace palmette::select
