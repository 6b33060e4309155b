#include "palmette/collectives/registry.hpp"

#include <gmock/gmock.h>

#include <set>

#include "palmette/base/text.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives {
namespace {

using test::error_of;
using test::job_on;
using testing::HasSubstr;

std::string refusal(std::string_view machine, Collective collective, std::string_view text) {
    const Job job = job_on(machine);
    return error_of([&] { make_program(job, Rank{0}, {collective, Rank{0}, 64}, Spec::parse(text)); });
}

TEST(Registry, every_row_says_what_it_is_and_has_a_name_of_its_own) {
    std::set<std::pair<Collective, std::string_view>> names;
    for (const Algorithm& row : algorithms()) {
        EXPECT_TRUE(names.insert({row.collective, row.name}).second) << row.name;
        for (const std::string_view text : {row.sentence, row.source, row.keys, row.preconditions})
            EXPECT_FALSE(text.empty()) << row.name;
        EXPECT_EQ(row.sentence.back(), '.') << row.name;
        EXPECT_EQ(&algorithm_named(row.collective, row.name), &row);
    }
}

TEST(Registry, every_row_has_samples_and_they_and_its_candidates_are_its_own) {
    for (const Algorithm& row : algorithms()) {
        EXPECT_TRUE(row.in_network || !row.samples.empty()) << row.name;
        for (const std::string_view specs : {row.samples, row.candidates}) {
            std::set<std::string> different;
            for (const std::string_view text : base::split(specs, ' ')) {
                EXPECT_EQ(Spec::parse(text).name, row.name);
                EXPECT_TRUE(different.insert(Spec::parse(text).text()).second) << text;
            }
        }
    }
}

TEST(Registry, an_unknown_name_is_answered_with_the_known_ones) {
    EXPECT_THAT(refusal("4node", Collective::gather, "bruck"),
                HasSubstr("algorithm 'bruck' is unknown for gather: there are linear, k_nomial, by_topology, "));
}

TEST(Registry, preconditions_are_checked_before_a_program_is_made) {
    EXPECT_THAT(refusal("6node", Collective::allgather, "recursive_doubling"),
                HasSubstr("needs a power of two participants, not 6"));
    EXPECT_THAT(refusal("5node", Collective::allgather, "neighbor_exchange"),
                HasSubstr("needs an even number of participants, not 5"));
    EXPECT_THAT(refusal("6node:4core", Collective::allgather, "leaders:between=recursive_doubling"),
                HasSubstr("not 6"));
    EXPECT_THAT(refusal("2node:1+4core", Collective::allgather, "leaders:leaders=2,layout=rail_major"),
                HasSubstr("layout rail_major needs at least 2 ranks in each group, group 0 has 1"));
    EXPECT_EQ(refusal("2node:1+4core", Collective::allgather, "leaders:leaders=2,layout=rails"), "no error");
}

TEST(Registry, unknown_keys_and_bad_values_are_named) {
    EXPECT_THAT(refusal("4node", Collective::gather, "linear:segment=8"),
                HasSubstr("key 'segment' is unknown; there is order"));
    EXPECT_THAT(refusal("4node", Collective::gather, "k_nomial:radix=1"),
                HasSubstr("radix must be a whole number of at least 2"));
    EXPECT_THAT(refusal("4node", Collective::gather, "by_topology:floor=linear"),
                HasSubstr("key 'floor' is unknown; there are top, segment, direct, relays and the names of levels"));
    EXPECT_THAT(refusal("4node", Collective::gather, "by_topology:node=ring"), HasSubstr("'ring' is no tree"));
    EXPECT_THAT(refusal("4node", Collective::allgather, "leaders:between=linear"),
                HasSubstr("'linear' is no exchange"));
    EXPECT_THAT(refusal("4node", Collective::allgather, "leaders:leaders=0"),
                HasSubstr("leaders must be a whole number of at least 1"));
    EXPECT_THAT(refusal("4node", Collective::allgather, "ring:nested=maybe"), HasSubstr("nested is one of"));
}

TEST(Registry, a_level_that_this_job_lacks_may_be_named) {
    EXPECT_EQ(refusal("4node:2core", Collective::gather, "by_topology:node=linear,leaf=linear,chassis=binomial"),
              "no error");
}

TEST(Registry, ranks_and_roots_outside_of_the_job_are_refused) {
    const Job job = job_on("4node");
    EXPECT_THAT(error_of([&] { make_program(job, Rank{4}, {Collective::gather, Rank{0}, 8}, Spec::parse("linear")); }),
                HasSubstr("rank 4 is outside of a job of 4 ranks"));
    EXPECT_THAT(error_of([&] { make_program(job, Rank{0}, {Collective::gather, Rank{-1}, 8}, Spec::parse("linear")); }),
                HasSubstr("root -1 is outside"));
}

}  // namespace
}  // namespace palmette::collectives
