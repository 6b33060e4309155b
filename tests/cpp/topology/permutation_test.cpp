#include "palmette/topology/permutation.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "support/errors.hpp"

namespace palmette::topology {
namespace {

using test::error_of;

std::vector<std::int32_t> values_of(const Permutation& permutation) {
    std::vector<std::int32_t> out;
    for (std::int32_t i = 0; i < permutation.size(); ++i) out.push_back(permutation[i]);
    return out;
}

TEST(Permutation, gives_back_what_it_was_made_from) {
    for (const std::vector<std::int32_t>& values : std::vector<std::vector<std::int32_t>>{{},
                                                                                          {0},
                                                                                          {1, 0},
                                                                                          {0, 1, 2, 3},
                                                                                          {3, 2, 1, 0},
                                                                                          {0, 4, 1, 5, 2, 6, 3, 7},
                                                                                          {5, 0, 3, 1, 4, 2},
                                                                                          {2, 0, 1, 4, 3}})
        EXPECT_EQ(values_of(Permutation(values)), values);
}

TEST(Permutation, placements_of_schedulers_take_few_runs) {
    std::vector<std::int32_t> cyclic;
    for (std::int32_t node = 0; node < 64; ++node)
        for (std::int32_t slot = 0; slot < 16; ++slot) cyclic.push_back(slot * 64 + node);
    EXPECT_EQ(Permutation(cyclic).runs().size(), 64U);
    std::vector<std::int32_t> block(1000);
    std::iota(block.begin(), block.end(), 0);
    EXPECT_EQ(Permutation(block).runs().size(), 1U);
    EXPECT_EQ(Permutation::identity(1'000'000'000).runs().size(), 1U);
}

TEST(Permutation, runs_read_back) {
    const Permutation permutation({0, 2, 4, 1, 3, 5, 7, 6});
    EXPECT_EQ(values_of(Permutation::from_runs(permutation.size(), permutation.runs())), values_of(permutation));
}

TEST(Permutation, refuses_what_is_none) {
    EXPECT_EQ(error_of([] { Permutation({0, 1, 1}); }), "not a permutation of 0..2: entry 2 is 1");
    EXPECT_EQ(error_of([] { Permutation({0, 3, 1}); }), "not a permutation of 0..2: entry 1 is 3");
    EXPECT_EQ(error_of([] { Permutation::from_runs(4, {{1, 0, 1}}); }), "runs of a permutation must begin at 0");
    EXPECT_EQ(error_of([] { Permutation::from_runs(4, {{0, 0, 1}, {4, 4, 1}}); }),
              "runs of a permutation must ascend below 4");
}

}  // namespace
}  // namespace palmette::topology
