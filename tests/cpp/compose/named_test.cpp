#include "palmette/compose/named.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "palmette/compose/factor.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/verify.hpp"
#include "support/compositions.hpp"

namespace palmette::compose {
namespace {

using test::error_of;

/// Even and uneven, one to three levels, for any number of ranks.
std::vector<std::string> hierarchies(std::int32_t p) {
    std::vector<std::string> out{base::cat(p)};
    const auto uneven = [](std::int32_t ranks, std::int32_t groups) {
        std::string text;
        for (std::int32_t g = 0, left = ranks; g < groups; ++g) {
            const std::int32_t size =
                g + 1 == groups ? left : std::max(1, std::min(left - (groups - 1 - g), (g + 1) * ranks / (groups + 1)));
            text += base::cat(g > 0 ? "+" : "", size);
            left -= size;
        }
        return text;
    };
    for (const std::int32_t groups : {2, 3, 4})
        if (p > groups) {
            if (p % groups == 0) out.push_back(base::cat(groups, ":", p / groups));
            out.push_back(base::cat(groups, ":", uneven(p, groups)));
        }
    if (p >= 6) out.push_back(base::cat("2:1+2:", uneven(p, 3)));
    if (p % 8 == 0) out.push_back(base::cat("2:2:2:", p / 8));
    return out;
}

const std::vector<Factoring>& factorings() {
    using Shape = Method::Shape;
    static const std::vector<Factoring> list{
        {},
        {{{Shape::tree, 2, 1}}, 1, 1, 1},
        {{{Shape::tree, 3, 0}}, 1, 2, 2},
        {{{Shape::ring, 2, 0}}, 2, 3, 4},
        {{{Shape::ring, 2, 1}}, 1, 1, 1},
        {{{Shape::direct, 2, 2}}, 3, 1, 2},
        {{{Shape::direct, 2, 1}}, 1, 2, 1},
    };
    return list;
}

class EveryComposition : public testing::TestWithParam<std::int32_t> {};

TEST_P(EveryComposition, is_proved_right_on_even_and_uneven_hierarchies_counts_and_roots) {
    const std::int32_t p = GetParam();
    for (const NamedCollective& row : named()) {
        std::size_t turn = 0;
        for (const std::string& hierarchy : hierarchies(p)) {
            const Job job = job_of_hierarchy(hierarchy, p);
            // Each factoring meets even and uneven counts, other roots and both kinds of operations.
            ++turn;
            const Tree tree = Tree::of(job);
            for (std::size_t f = 0; f < factorings().size(); ++f) {
                NamedRequest request;
                request.ranks = p;
                request.root = Rank{static_cast<std::int32_t>(3 * f + 5 * turn + 1) % p};
                request.element_bytes = 4;
                request.bytes = (f + turn) % 2 == 0 ? std::vector<std::int64_t>{64} : test::uneven_bytes(row.name, p);
                request.operation.commutative = (f + turn) % 3 != 2;
                const Composition composition = compose(row.name, request);
                const Factory factory(composition, job, tree, factorings()[f]);
                const plan::Plan plan = factory.plan();
                const auto complaint = plan::verify(plan, job);
                ASSERT_FALSE(complaint) << row.name << " on " << hierarchy << " with " << factory.factoring().text()
                                        << ", root " << request.root << ": " << *complaint;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryComposition, testing::Range(1, 25));

TEST(EveryComposition, is_proved_right_where_ranks_are_scattered) {
    for (const char* machine : {"3leaf:2+3+2node:2core", "2pod:2leaf:2+1node:2+3core"})
        for (const char* placement : {"cyclic", "random:5"}) {
            const Job job = test::job_on(machine, placement);
            const Tree tree = Tree::of(job);
            for (const NamedCollective& row : named())
                for (std::size_t f = 0; f < factorings().size(); ++f) {
                    NamedRequest request;
                    request.ranks = job.size();
                    request.root = Rank{static_cast<std::int32_t>(5 * f) % job.size()};
                    request.bytes = {60};
                    request.operation.commutative = f % 3 != 2;
                    const Composition composition = compose(row.name, request);
                    const auto complaint = plan::verify(Factory(composition, job, tree, factorings()[f]).plan(), job);
                    ASSERT_FALSE(complaint) << row.name << " on " << machine << ", " << placement << ": " << *complaint;
                }
        }
}

TEST(EveryComposition, is_refused_with_what_fits_where_lengths_dont) {
    NamedRequest request;
    request.ranks = 4;
    request.bytes = {1, 2, 3};
    EXPECT_EQ(error_of([&] { compose("gather", request); }), "gather: expected one length or 4, found 3");
    request.bytes = {6};
    request.element_bytes = 4;
    EXPECT_EQ(error_of([&] { compose("reduce", request); }),
              "reduce: 6 bytes are no whole number of elements of 4 bytes");
    EXPECT_THAT(error_of([&] { compose("gathr", request); }),
                testing::StartsWith("composition 'gathr' is unknown: there are gather, scatter, "));
}

}  // namespace
}  // namespace palmette::compose
