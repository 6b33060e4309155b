// What is special to reductions to a root: their counts, order, memory, and how long they take on links.
#include <gmock/gmock.h>

#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/verify.hpp"
#include "support/crossings.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"
#include "support/plan_times.hpp"

namespace palmette::collectives::reduce_tests {
namespace {

using plan::PlanCount;
using plan::StepKind;
using test::job_on;
using testing::HasSubstr;

/// The emulated cluster: three leaves, ranks dealt at random.
constexpr const char* lab = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core";
constexpr double uplink_bytes_per_s = 50e6 / 8;

Request request(std::int64_t bytes, std::int32_t root = 0, bool ordered = false, bool shared_memory = false) {
    Request out{Collective::reduce, Rank{root}, bytes};
    out.element_bytes = 4;
    out.ordered = ordered;
    out.shared_memory = shared_memory;
    return out;
}

PlanCount count(const Job& job, const char* text, const Request& request) {
    return plan::count(make_plan(job, request, Spec::parse(text)), job, {request.block_bytes});
}

const plan::LevelCount& level(const PlanCount& count, std::string_view name) {
    for (const plan::LevelCount& one : count.levels)
        if (one.level == name) return one;
    throw std::runtime_error("no such level");
}

TEST(ReduceTrees, send_p_minus_1_messages_of_the_whole_vector_in_any_order) {
    for (const std::int32_t p : {2, 7, 16, 33}) {
        const Job job = job_on("4leaf:1+5+2+3node:2+4+3core", "block", p);
        for (const char* text : {"linear", "k_nomial", "k_nomial:radix=5", "k_ary:segment=1M", "chain:segment=1M",
                                 "by_topology", "by_topology:leaf=chain,node=binomial"})
            for (const bool ordered : {false, true})
                for (const std::int32_t root : {0, p / 2}) {
                    const PlanCount made = count(job, text, request(24'000, root, ordered));
                    EXPECT_EQ(made.messages, p - 1) << text;
                    EXPECT_EQ(made.bytes, (p - 1) * 24'000) << text;
                    EXPECT_EQ(made.reduced_bytes, (p - 1) * 24'000) << text;
                }
    }
}

TEST(ReduceTrees, are_as_deep_as_the_methods_say_and_no_deeper_where_the_order_is_kept) {
    const Job job = job_on("64node", "random:3");
    for (const auto& [text, depth] : {std::pair("linear", 1), std::pair("k_nomial", 6),
                                      std::pair("k_nomial:radix=4", 3), std::pair("bine", 6), std::pair("chain", 63)})
        EXPECT_EQ(count(job, text, request(8)).longest_chain, depth) << text;
    for (const std::int32_t root : {0, 1, 31, 63}) {
        EXPECT_EQ(count(job, "linear", request(8, root, true)).longest_chain, 1);
        EXPECT_LE(count(job, "k_nomial", request(8, root, true)).longest_chain, 6);
        EXPECT_LE(count(job, "chain", request(8, root, true)).longest_chain, 63);
    }
    EXPECT_EQ(count(job, "chain", request(8, 32, true)).longest_chain, 32) << "two chains meet at the root";
}

TEST(ReduceInOrder, needs_no_word_about_it_and_refuses_what_can_not_keep_it) {
    const Job job = job_on(lab, "random:4");
    for (const char* text : {"linear", "k_nomial", "k_ary", "chain", "reduce_scatter_gather"})
        for (const std::int32_t root : {0, 5, 15})
            EXPECT_EQ(plan::verify(make_plan(job, request(4096, root, true), Spec::parse(text)), job), std::nullopt);
    const auto refusal = [&](const char* text) {
        return test::error_of([&] { make_program(job, Rank{0}, request(64, 0, true), Spec::parse(text)); });
    };
    for (const char* text : {"k_nomial:order=topology", "reduce_scatter_gather:order=topology"})
        EXPECT_THAT(refusal(text), HasSubstr("topology order isn't rank order here: use order=rank")) << text;
    EXPECT_THAT(refusal("by_topology"), HasSubstr("use an algorithm with order=rank"));
    EXPECT_THAT(refusal("bine"), HasSubstr("doesn't combine in the order of ranks"));
    EXPECT_THAT(refusal("ring_gather"), HasSubstr("doesn't combine in the order of ranks"));
    EXPECT_EQ(test::error_of([&] {
                  make_program(job_on(lab), Rank{0}, request(64, 0, true), Spec::parse("k_nomial:order=topology"));
              }),
              "no error")
        << "positions are ranks with block placement";
}

TEST(ReduceScratch, has_a_layer_for_each_small_child_and_few_for_large_ones) {
    const Job job = job_on("33node");
    const auto layers = [&](const char* text, std::int64_t bytes, std::int32_t rank) {
        return make_program(job, Rank{rank}, request(bytes), Spec::parse(text)).scratch.size();
    };
    EXPECT_EQ(layers("linear", 64, 0), 32U);
    EXPECT_EQ(layers("linear", 32 << 10, 0), 8U) << "of 32 children 8 at a time";
    EXPECT_EQ(layers("linear", 1 << 20, 0), 2U);
    EXPECT_EQ(layers("linear", 64, 7), 0U) << "a leaf of the tree sends its input";
    EXPECT_EQ(layers("chain", 1 << 20, 0), 1U);
    EXPECT_EQ(layers("chain", 1 << 20, 7), 1U) << "what has come is combined in place";
    EXPECT_EQ(layers("k_nomial", 1 << 20, 16), 3U);
    // With two layers in turn all is still right.
    for (const char* text : {"linear:segment=64K", "k_nomial:radix=9"})
        EXPECT_EQ(plan::verify(make_plan(job, request(256 << 10, 12), Spec::parse(text)), job), std::nullopt);
}

TEST(ReduceByTopology, combines_straight_from_memory_inside_of_a_node) {
    const Job job = job_on("2leaf:2node:2socket:3core");
    for (const char* text : {"by_topology", "by_topology:inside=shared", "by_topology:node=shared,top=chain"}) {
        const PlanCount made = count(job, text, request(100, 5, false, true));
        EXPECT_EQ(made.messages, 3) << text;
        EXPECT_EQ(made.pulled_bytes, 20 * 100) << text;
        const plan::Plan without = make_plan(job, request(100, 5), Spec::parse(text));
        EXPECT_EQ(plan::count(without, job, {100}).messages, 23) << "messages where memory isn't shared";
    }
}

TEST(ReduceByTopology, small_vectors_cross_the_spine_once_in_a_row) {
    const Job job = job_on(lab, "random:4");
    for (const std::int32_t root : {0, 7, 15})
        EXPECT_EQ(
            test::crossings_in_a_row(make_plan(job, request(1024, root), Spec::parse("by_topology")), job, "leaf"), 1);
}

TEST(LargeReduce, brings_one_vector_over_every_uplink_and_ends_close_to_the_bound) {
    for (const char* placement : {"random:4", "block"})
        for (const std::int32_t root : {0, 7, 15}) {
            const Job job = job_on(lab, placement);
            for (const char* text : {"by_topology", "by_topology:node=linear,top=chain,segment=8K", "chain"})
                for (const auto& [bytes, multiple] : {std::pair(256 << 10, 1.5), std::pair(64 << 10, 2.0)}) {
                    const plan::Plan made = make_plan(job, request(bytes, root), Spec::parse(text));
                    const PlanCount counts = plan::count(made, job, {bytes});
                    for (const plan::LinkCount& link : level(counts, "leaf").links)
                        EXPECT_LE(link.busiest_bytes(), bytes) << text;
                    const double bound = bytes / uplink_bytes_per_s;
                    const double seconds = test::time_on_links(made, job);
                    EXPECT_GE(seconds, bound) << "a vector must leave every leaf";
                    EXPECT_LE(seconds, multiple * bound) << text << ", " << bytes << " bytes, root " << root;
                }
        }
}

TEST(ReduceScatterGather, moves_p_minus_1_vectors_and_half_of_lg_p_more) {
    const Job job = job_on("16node");
    const PlanCount made = count(job, "reduce_scatter_gather", request(64'000, 5));
    // Halving: every rank sends 1/2 + 1/4 + ... of it. Gather: n/2 in each of the lg p steps.
    EXPECT_EQ(made.bytes, 15 * 64'000 + 4 * 32'000);
    EXPECT_EQ(made.messages, 16 * 4 + 15);
    EXPECT_EQ(made.longest_chain, 8);
    // Two ranks more combine in pairs before.
    const PlanCount more = count(job_on("18node"), "reduce_scatter_gather", request(64'000, 5));
    EXPECT_EQ(more.bytes, made.bytes + 2 * 64'000);
    EXPECT_LE(more.longest_chain, 9);
}

TEST(ReduceNodePieces, crosses_twice_and_brings_every_other_node_its_piece_once) {
    const Job job = job_on("9node:4core");
    for (const char* spec : {"node_pieces", "node_pieces:inside=halving"}) {
        const Request asked = request(7200, 5);
        EXPECT_EQ(test::crossings_in_a_row(make_plan(job, asked, Spec::parse(spec)), job, "node"), 2) << spec;
        const auto links = level(count(job, spec, asked), "node").links;
        const std::int32_t root = job.nodes().groups.group_of(job.position_of({5}).value);
        for (std::int32_t node = 0; node < 9; ++node) {
            const plan::LinkCount& link = links[static_cast<std::size_t>(node)];
            EXPECT_EQ(link.bytes_out, node == root ? 6400 : 6400 + 800) << spec;
            EXPECT_EQ(link.bytes_in, node == root ? 6400 + 6400 : 6400) << spec;
        }
    }
}

TEST(ReduceNodePieces, refuses_a_key_that_it_has_no_use_for) {
    EXPECT_THAT(
        test::error_of([] { make_plan(job_on("9node:4core"), request(64), Spec::parse("node_pieces:complete=tree")); }),
        testing::HasSubstr("complete"));
}

TEST(RingGather, takes_one_vector_from_everybody_and_leaves_no_group_with_more) {
    for (const std::int32_t root : {0, 3, 15}) {
        const Job job = job_on(lab, "random:4");
        const std::int64_t block = 1000;
        const PlanCount made = count(job, "ring_gather", request(16 * block, root));
        EXPECT_EQ(made.bytes, 15 * 16 * block + 15 * block)
            << "p - 1 vectors round the ring and p - 1 blocks to the root";
        for (std::size_t l = 0; l < 2; ++l) {
            const topology::Partition& groups = job.levels()[l].groups;
            for (std::int32_t g = 0; g < groups.count(); ++g) {
                const plan::LinkCount& link = made.levels[l].links[static_cast<std::size_t>(g)];
                const bool own = groups.group_of(job.position_of({root}).value) == g;
                EXPECT_EQ(link.bytes_out, own ? (16 - groups.size_of(g)) * block : 16 * block);
            }
        }
    }
}

TEST(ReduceOfAMillion, has_small_programs) {
    const Job job = Job::regular({{"leaf", 1024}, {"node", 64}, {"core", 16}});
    for (const char* text : {"by_topology:leaf=binomial,node=binomial,top=binomial", "by_topology", "k_nomial:radix=4",
                             "k_ary", "chain", "bine"})
        for (const std::int32_t root : {0, 654'321})
            for (const std::int32_t rank : {0, 1, 16, 1024, 654'321, 1'048'575}) {
                const Program large = make_program(job, Rank{rank}, request(1 << 20, root), Spec::parse(text));
                EXPECT_LT(large.steps.size(), 300U) << text;
                const Program small = make_program(job, Rank{rank}, request(64, root), Spec::parse(text));
                EXPECT_LT(small.steps.size() + small.regions.size() + small.waits.size(), 400U) << text;
            }
    const Program one = make_program(job, Rank{654'321}, request(64, 0, true), Spec::parse("k_nomial"));
    EXPECT_LT(one.steps.size(), 50U) << "the order of ranks is arithmetic, too";
}

}  // namespace
}  // namespace palmette::collectives::reduce_tests
