// Reductions on circulant graphs and by PAT: right for 1 to 257 ranks (a sample of them outside of make test-long), and
// at the optimum in rounds and bytes for every one of them.
#include <gmock/gmock.h>

#include <cstdlib>

#include "palmette/base/text.hpp"
#include "palmette/collectives/exchanges/reduce_exchange.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/verify.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives::no_fold_tests {
namespace {

using plan::PlanCount;

std::vector<std::int32_t> numbers_of_ranks() {
    const char* const all = std::getenv("PALMETTE_TEST_EVERY_SHAPE");
    if (all == nullptr || *all != '1') return {1, 2, 3, 5, 6, 7, 12, 24, 31, 33, 65, 100, 257};
    std::vector<std::int32_t> out;
    for (std::int32_t p = 1; p <= 257; ++p) out.push_back(p);
    return out;
}

std::int32_t rounds_of(std::int32_t p) {
    std::int32_t q = 0;
    while (std::int64_t{1} << q < p) ++q;
    return q;
}

/// A block of one element of 8 bytes for each rank; of reduce `blocks` elements.
Request request_of(Collective collective, std::int64_t elements, std::int32_t root = 0) {
    Request request{collective, Rank{root}, 8 * elements};
    request.element_bytes = 8;
    return request;
}

void expect_right(const Job& job, const Request& request, const std::string& text) {
    const plan::Plan made = make_plan(job, request, Spec::parse(text));
    EXPECT_EQ(plan::verify(made, job), std::nullopt)
        << plan::name_of(request.collective) << ' ' << text << ", " << job.size() << " ranks, root " << request.root;
}

TEST(NoFold, reductions_are_right_for_any_number_of_ranks) {
    for (const std::int32_t p : numbers_of_ranks())
        for (const char* text : {"circulant", "pat"}) {
            expect_right(Job::flat(p), request_of(Collective::reduce_scatter, 1), text);
            expect_right(Job::flat(p), request_of(Collective::allreduce, p), text);
            expect_right(Job::flat(p), request_of(Collective::allgather, 1), text);
            if (HasFailure()) return;
        }
}

TEST(NoFold, reduce_is_right_for_any_number_of_ranks_and_blocks_and_every_root) {
    for (const std::int32_t p : numbers_of_ranks())
        for (const std::int32_t blocks : {1, 2, 3, rounds_of(p) + 1, 16, 37})
            for (std::int32_t root = 0; root < p; root += 1 + p / 2) {
                expect_right(Job::flat(p), request_of(Collective::reduce, blocks, root),
                             base::cat("circulant:segments=", blocks));
                if (HasFailure()) return;
            }
}

TEST(NoFold, exchanges_between_groups_are_right_for_any_number_of_groups) {
    for (const std::int32_t groups : {2, 3, 5, 6, 7, 12, 24})
        for (const char* between : {"circulant", "pat"}) {
            const Job job = test::job_on(base::cat(groups, "node:3core"), "block");
            for (const char* leaders : {"1", "2", "all"}) {
                const std::string text = base::cat("leaders:leaders=", leaders, ",between=", between);
                expect_right(job, request_of(Collective::allreduce, 100), text);
                if (std::string_view(leaders) != "all") expect_right(job, request_of(Collective::allgather, 1), text);
                expect_right(job, request_of(Collective::reduce_scatter, 1), text);
            }
        }
}

PlanCount count(std::int32_t p, const Request& request, std::string_view text) {
    return plan::count(make_plan(Job::flat(p), request, Spec::parse(text)), Job::flat(p), {request.block_bytes});
}

TEST(NoFold, every_rank_sends_p_minus_1_blocks_in_ceil_lg_p_rounds) {
    for (const std::int32_t p : {2, 3, 5, 6, 7, 12, 24, 33, 64})
        for (const char* text : {"circulant", "pat"}) {
            const PlanCount scattered = count(p, request_of(Collective::reduce_scatter, 1), text);
            EXPECT_EQ(scattered.longest_chain, rounds_of(p)) << text << ' ' << p;
            EXPECT_EQ(scattered.messages, std::int64_t{p} * rounds_of(p)) << text << ' ' << p;
            for (const plan::LinkCount& link : scattered.levels.front().links)
                EXPECT_EQ(link.bytes_out, 8 * (p - 1)) << text << ' ' << p;
            const PlanCount reduced = count(p, request_of(Collective::allreduce, p), text);
            EXPECT_LE(reduced.longest_chain, 2 * rounds_of(p)) << text << ' ' << p;
            for (const plan::LinkCount& link : reduced.levels.front().links)
                EXPECT_EQ(link.bytes_out, 2 * 8 * (p - 1)) << text << ' ' << p;
        }
}

// The vectors that are folded in and out are half as much again for a rank; as they don't overlap with the halving, its
// critical path has 2.0 to 2.3 times the bytes.
TEST(NoFold, halving_sends_half_as_much_again_where_it_folds) {
    for (const std::int32_t p : {3, 5, 6, 7, 12, 24}) {
        const auto busiest = [&](std::string_view text) {
            std::int64_t most = 0;
            for (const plan::LinkCount& link :
                 count(p, request_of(Collective::allreduce, 840), text).levels.front().links)
                most = std::max(most, link.bytes_out);
            return static_cast<double>(most);
        };
        EXPECT_GE(busiest("rabenseifner"), 1.45 * busiest("circulant")) << p;
        EXPECT_EQ(busiest("pat"), busiest("circulant")) << p;
    }
}

TEST(NoFold, reduce_takes_n_minus_1_and_ceil_lg_p_rounds_at_most_and_sends_the_vector_once) {
    for (const std::int32_t p : {2, 3, 5, 6, 7, 12, 24, 33})
        for (const std::int32_t blocks : {1, 4, 16}) {
            const PlanCount made =
                count(p, request_of(Collective::reduce, blocks), base::cat("circulant:segments=", blocks));
            EXPECT_LE(made.longest_chain, blocks - 1 + rounds_of(p)) << p << ' ' << blocks;
            EXPECT_EQ(made.messages, std::int64_t{p - 1} * blocks) << p << ' ' << blocks;
            for (const plan::LinkCount& link : made.levels.front().links) {
                EXPECT_LE(link.bytes_out, 8 * blocks);
                EXPECT_LE(link.messages_in, blocks - 1 + rounds_of(p)) << p << ' ' << blocks;
            }
        }
}

TEST(NoFold, pat_sends_most_to_the_nearest_and_a_circulant_graph_to_the_farthest) {
    const Job job = test::job_on("2leaf:6node:1core", "block");
    const auto between_leaves = [&](std::string_view text) {
        const Request request = request_of(Collective::reduce_scatter, 1);
        return plan::count(make_plan(job, request, Spec::parse(text)), job, {8}).levels.front().bytes;
    };
    // Distances 1, 2, 4 and 8 carry 6, 3, 1 and 1 blocks; 2, 4, 8 and 8 of 12 ranks reach the other leaf.
    EXPECT_EQ(between_leaves("pat"), 8 * (2 * 6 + 4 * 3 + 8 * 1 + 8 * 1));
    // Distances 6, 3, 2 and 1 carry 6, 3, 1 and 1.
    EXPECT_EQ(between_leaves("circulant"), 8 * (12 * 6 + 6 * 3 + 4 * 1 + 2 * 1));
}

TEST(NoFold, refuses_what_must_keep_the_order_of_ranks) {
    for (const Collective collective : {Collective::reduce_scatter, Collective::allreduce, Collective::reduce})
        for (const std::string text : {"circulant", "pat", "leaders:between=pat"}) {
            if (collective == Collective::reduce && text != "circulant") continue;
            Request request = request_of(collective, 1);
            request.ordered = true;
            const Spec spec = Spec::parse(text);
            const Algorithm& row = algorithm_named(collective, spec.name);
            EXPECT_THAT(row.refuse(Job::flat(3), request, spec), testing::Optional(testing::HasSubstr("rank order")));
        }
}

}  // namespace
}  // namespace palmette::collectives::no_fold_tests
