// Plans played over links: closed formulas where nothing is shared, another simulator where it is, and what must always
// hold.
#include "palmette/model/flow/flow.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "palmette/model/bound/bound.hpp"
#include "palmette/model/play/predict.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/space.hpp"
#include "support/costed.hpp"
#include "support/errors.hpp"
#include "support/fair_links.hpp"
#include "support/jobs.hpp"
#include "support/specs.hpp"

namespace palmette::model {
namespace {

using plan::Collective;
using plan::Plan;
using plan::Request;
using test::costed_job;
using test::error_of;
using test::job_on;
using testing::HasSubstr;
using topology::Job;
using topology::Rank;

Plan plan_of(const Job& job, Collective collective, const std::string& spec, std::int64_t bytes, std::int32_t root = 0,
             bool shared = false) {
    Request request{collective, Rank{root}, bytes};
    request.element_bytes = plan::is_reduction(collective) ? 4 : 1;
    request.shared_memory = shared;
    return collectives::make_plan(job, request, collectives::Spec::parse(spec));
}

FlowResult played(const Job& job, Collective collective, const std::string& spec, std::int64_t bytes,
                  const std::string& traffic = "", bool shared = false) {
    FlowOptions options;
    options.traffic = parse_traffic(traffic);
    return flow(plan_of(job, collective, spec, bytes, 0, shared), job, {bytes}, options);
}

const char* const level_costs = R"({"name":"node","latency_s":1e-5,"overhead_s":1e-6,"stream_bytes_per_s":5e8},)"
                                R"({"name":"core","latency_s":1e-6,"overhead_s":2e-7,"stream_bytes_per_s":4e9})";

TEST(Flow, of_one_message_is_latency_and_bytes_over_the_rate) {
    const Job alone = costed_job(level_costs, "", 2, 1, 1e9);
    EXPECT_DOUBLE_EQ(played(alone, Collective::bcast, "linear", 1000000).seconds, 1e-5 + 1e6 / 5e8);  // stream's rate
    const Job narrow = costed_job(level_costs, "", 2, 1, 1e8);
    EXPECT_DOUBLE_EQ(played(narrow, Collective::bcast, "linear", 1000000).seconds, 1e-5 + 1e6 / 1e8);  // the link's
    const Job inside = costed_job(level_costs, "", 1, 2);
    EXPECT_DOUBLE_EQ(played(inside, Collective::bcast, "linear", 1000000).seconds, 1e-6 + 1e6 / 4e9);
}

TEST(Flow, keeps_a_rank_busy_with_one_message_after_the_other) {
    // All send at once; the root takes them one by one.
    const Job job = costed_job(level_costs, "", 9, 1);
    const FlowResult gather = played(job, Collective::gather, "linear", 0);
    EXPECT_DOUBLE_EQ(gather.seconds, 1e-5 - 1e-6 + 8 * 1e-6);
    EXPECT_EQ(gather.busiest_rank, 0);
    EXPECT_DOUBLE_EQ(gather.busiest_rank_s, 8e-6);
    const FlowResult bcast = played(job, Collective::bcast, "linear", 0);
    EXPECT_DOUBLE_EQ(bcast.seconds, 8 * 1e-6 + 1e-5 - 1e-6);
}

TEST(Flow, of_a_ring_is_p_minus_1_steps_where_nobody_shares_a_link) {
    const Job job = costed_job(level_costs, "", 6, 1, 1e8);
    const double step = 1e-5 + 50000 / 1e8;
    EXPECT_NEAR(played(job, Collective::allgather, "ring", 50000).seconds, 5 * step, 1e-12);
}

TEST(Flow, of_a_binomial_tree_is_lg_p_messages) {
    // Root first sends to 4; each later send of a rank starts when the one before has left it.
    const Job job = costed_job(R"({"name":"node","latency_s":1e-5})", "", 8, 1, 1e8);
    EXPECT_NEAR(played(job, Collective::bcast, "k_nomial:order=rank", 8).seconds, 3e-5, 1e-6);
}

TEST(Flow, of_a_linear_gather_fills_the_roots_link) {
    const Job job = job_on("5node@100B/s:2core");
    const FlowResult result = played(job, Collective::gather, "linear", 300);
    EXPECT_DOUBLE_EQ(result.seconds, 8 * 300 / 100.0);
    for (const FlowLink& link : result.links)
        if (link.group == 0 && !link.outwards) {
            EXPECT_DOUBLE_EQ(link.utilisation, 1);
            EXPECT_EQ(link.bytes, 2400);
        }
}

TEST(Flow, of_a_pipeline_is_much_shorter_than_of_the_same_chain_with_whole_vectors) {
    // Parts for the same neighbour that shared the link would all arrive at the end.
    const Job job = job_on("5node@1MB/s:1core");
    EXPECT_NEAR(played(job, Collective::bcast, "chain:segment=100000", 1'000'000).seconds, 1.0 + 3 * 0.1, 1e-6);
    EXPECT_NEAR(played(job, Collective::bcast, "chain:segment=1000000", 1'000'000).seconds, 4.0, 1e-6);
}

TEST(Flow, shares_a_link_with_what_other_traffic_takes_of_it) {
    const Job quiet = costed_job(R"({"name":"node"})", "", 2, 1, 100);
    const Job loaded = costed_job(R"({"name":"node"})", "", 2, 1, 100, 0.75);
    EXPECT_DOUBLE_EQ(played(quiet, Collective::bcast, "linear", 1000).seconds, 10);
    EXPECT_DOUBLE_EQ(played(loaded, Collective::bcast, "linear", 1000).seconds, 40);
}

TEST(Flow, takes_copies_and_reductions_at_the_rates_of_memory) {
    const Job job = costed_job(R"({"name":"node"})", R"("copy_bytes_per_s":1e9,"reduce_bytes_per_s":5e8)", 2, 1, 1e9);
    // The root copies its own block while the other one comes.
    EXPECT_DOUBLE_EQ(played(job, Collective::gather, "linear", 1000000).seconds, 1e-3);
    // Then it combines what has come with its own.
    EXPECT_DOUBLE_EQ(played(job, Collective::reduce, "linear", 1000000).seconds, 1e-3 + 2e-3);
}

TEST(Flow, reads_shared_memory_at_the_rate_of_copies) {
    const Job job =
        costed_job(R"({"name":"node"},{"name":"core","latency_s":1e-6})", R"("copy_bytes_per_s":1e9)", 1, 4);
    const FlowResult result = played(job, Collective::bcast, "shared", 1000000, "", true);
    EXPECT_EQ(result.messages, 0);
    EXPECT_GE(result.seconds, 1e-3 + 1e-6);
    EXPECT_LE(result.seconds, 3e-3);  // a copy into shared memory and one out of it, at most
}

TEST(Flow, keeps_both_ranks_of_a_node_busy_while_they_copy_a_message) {
    const double copied = 1e6 / 4e9, latency = 1e-6, overhead = 2e-7;
    const Job job = costed_job(level_costs, "", 1, 3);
    const FlowResult bcast = played(job, Collective::bcast, "linear", 1000000);
    EXPECT_DOUBLE_EQ(bcast.seconds, latency + overhead + 2 * copied);
    EXPECT_DOUBLE_EQ(bcast.busiest_rank_s, 2 * (overhead + copied));
    const FlowResult gather = played(job, Collective::gather, "linear", 1000000);
    EXPECT_DOUBLE_EQ(gather.seconds, latency + overhead + 2 * copied);
    EXPECT_DOUBLE_EQ(gather.busiest_rank_s, 2 * (overhead + copied));
}

TEST(Flow, shares_the_memory_of_a_node_among_its_messages) {
    // Copies at 4 GB/s a pair and, where that is known, 4 GB/s together.
    const std::string levels = R"({"name":"node"},{"name":"core","stream_bytes_per_s":4e9)";
    const Job free = costed_job(levels + "}", "", 2, 4);
    const Job shared = costed_job(levels + R"(,"together_bytes_per_s":4e9})", "", 2, 4);
    const double one = 1e6 / 4e9;
    // In each node three of four neighbours in the ring.
    EXPECT_LT(played(free, Collective::allgather, "ring:nested=no", 1000000).seconds, 7 * 2.5 * one);
    EXPECT_GE(played(shared, Collective::allgather, "ring:nested=no", 1000000).seconds, 7 * 3 * one * (1 - 1e-9));
    EXPECT_TRUE(played(shared, Collective::allgather, "ring", 1000000).links.empty());  // memory isn't listed
}

TEST(Flow, agrees_with_a_prediction_where_no_link_is_shared) {
    const Job job = costed_job(level_costs, R"("copy_bytes_per_s":1e9,"reduce_bytes_per_s":5e8)", 3, 4, 1e12);
    Costs costs = Costs::of(job);
    costs.eager_copy_bytes_per_s = 0;  // which no topology gives
    int compared = 0, otherwise = 0, far = 0;
    for (const test::NamedSpec& named : test::every_spec())
        for (const std::int64_t bytes : {800, 8000}) {
            Request request{named.first, Rank{1}, bytes};
            request.element_bytes = plan::is_reduction(named.first) ? 4 : 1;
            const collectives::Spec spec = collectives::Spec::parse(named.second);
            if (collectives::algorithm_named(named.first, spec.name).refuse(job, request, spec)) continue;
            const Plan plan = collectives::make_plan(job, request, spec);
            const double expected = predict(plan, job, {bytes}, costs).seconds;
            FlowOptions options;
            options.eager_bytes = costs.eager_bytes;
            const double seconds = flow(plan, job, {bytes}, options).seconds;
            ++compared;
            if (std::abs(seconds - expected) <= 1e-9 * expected) continue;
            ++otherwise;
            if (std::abs(seconds - expected) > 3e-2 * expected) ++far;
        }
    EXPECT_GT(compared, 100);
    // Simultaneous steps of a rank may come in another order.
    EXPECT_LT(otherwise, compared / 8);
    // With a window of one, flow sends on when the bytes have left, the prediction when it has handed them over.
    EXPECT_LT(far, compared / 20);
}

/// Everything that sends messages only: pulls aren't in the other simulator.
void expect_agreement(const std::string& machine, const std::string& placement) {
    const Job job = job_on(machine, placement);
    int compared = 0, otherwise = 0;
    for (const test::NamedSpec& named : test::every_spec()) {
        Request request{named.first, Rank{job.size() / 2}, 4800};
        request.element_bytes = plan::is_reduction(named.first) ? 4 : 1;
        const collectives::Spec spec = collectives::Spec::parse(named.second);
        if (collectives::algorithm_named(named.first, spec.name).refuse(job, request, spec)) continue;
        const Plan plan = collectives::make_plan(job, request, spec);
        bool messages_only = true;
        for (const plan::Program& program : plan.programs)
            for (const plan::Step& step : program.steps)
                messages_only =
                    messages_only && (step.kind == plan::StepKind::send || step.kind == plan::StepKind::recv ||
                                      step.kind == plan::StepKind::copy);
        if (!messages_only) continue;
        ++compared;
        const double expected = test::FairLinks(plan, job).run();
        FlowOptions options;
        options.eager_bytes = -1;  // the other one starts a message when both sides are there
        // It takes 1 TB/s for messages that pass no link, where this one takes no time: in a ring that is in step, and
        // where a rank can send two messages to another at the same moment, ties fall otherwise.
        const double seconds = flow(plan, job, {4800}, options).seconds;
        EXPECT_NEAR(seconds, expected, 4e-2 * expected)
            << plan::name_of(named.first) << ' ' << named.second << ", " << machine << ' ' << placement;
        if (std::abs(seconds - expected) > 1e-4 * expected) ++otherwise;
    }
    EXPECT_GT(compared, 50);
    EXPECT_LT(otherwise, compared / 10);
}

TEST(Flow, agrees_with_a_simulator_that_shares_all_links_anew_at_every_event) {
    expect_agreement("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core", "block");
    expect_agreement("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core", "random:2");
    expect_agreement("2pod@1MB/s:2+1leaf@3MB/s:2+1+1node@1MB/s:3core", "cyclic");
}

/// What holds for every plan: bytes are kept, nothing beats the bound, the same comes out twice.
void expect_sound(const Job& job, const std::string& where) {
    for (const test::NamedSpec& named : test::every_spec())
        for (const bool shared : {false, true}) {
            Request request{named.first, Rank{1}, 4800};
            request.element_bytes = plan::is_reduction(named.first) ? 4 : 1;
            request.shared_memory = shared;
            const collectives::Spec spec = collectives::Spec::parse(named.second);
            if (collectives::algorithm_named(named.first, spec.name).refuse(job, request, spec)) continue;
            const Plan plan = collectives::make_plan(job, request, spec);
            const std::string what =
                std::string(plan::name_of(named.first)) + ' ' + named.second + (shared ? ", shared, " : ", ") + where;
            const FlowResult once = flow(plan, job, {4800}), twice = flow(plan, job, {4800});
            EXPECT_EQ(once.seconds, twice.seconds) << what;
            EXPECT_EQ(once.carried, twice.carried) << what;
            EXPECT_GE(once.seconds * (1 + 1e-9), bound(job, request, {4800}).seconds) << what;
            const plan::PlanCount count = plan::count(plan, job, {4800});
            EXPECT_EQ(once.messages, count.messages) << what;
            EXPECT_EQ(once.bytes, count.bytes) << what;
            for (std::size_t l = 0; l < once.links.size(); ++l) {
                const FlowLink& link = once.links[l];
                const plan::LinkCount& counted =
                    count.levels[static_cast<std::size_t>(link.level)].links[static_cast<std::size_t>(link.group)];
                EXPECT_EQ(link.bytes, link.outwards ? counted.bytes_out : counted.bytes_in) << what;
                EXPECT_NEAR(link.carried_bytes, static_cast<double>(link.bytes), 1e-6 * static_cast<double>(link.bytes))
                    << what;
                EXPECT_LE(link.utilisation, 1 + 1e-9) << what;
                double in_bins = 0;
                for (std::size_t b = 0; b < once.bins; ++b) in_bins += once.carried[l * once.bins + b];
                EXPECT_NEAR(in_bins, link.carried_bytes, 1e-4 * link.carried_bytes + 1e-6) << what;
            }
        }
}

TEST(Flow, keeps_bytes_and_the_bound_and_comes_out_the_same_twice) {
    expect_sound(job_on("3leaf@50Mbit/s~20us:3+3+2node@100Mbit/s~5us:2core", "random:7"), "lab");
    expect_sound(costed_job(level_costs, R"("copy_bytes_per_s":1e9,"reduce_bytes_per_s":5e8)", 5, 3, 2e8), "costed");
}

TEST(Flow, in_background_traffic_of_a_set_rate_has_the_rest_of_a_link) {
    // One process beside each of two ranks, 30 B/s each way of 100.
    const Job job = job_on("2node@100B/s:1core");
    EXPECT_NEAR(played(job, Collective::bcast, "linear", 7000, "alltoall:half:10@30B/s").seconds, 100, 1e-6);
    // As fast as links go: two flows, a half each.
    const FlowResult half = played(job, Collective::bcast, "linear", 5000, "alltoall:half:10");
    EXPECT_NEAR(half.seconds, 100, 0.2);
    EXPECT_NEAR(half.links.front().utilisation, 1, 1e-6);
    EXPECT_NEAR(half.links.front().carried_bytes, 10000, 30);
    EXPECT_EQ(half.links.front().bytes, 5000);
}

TEST(Flow, under_traffic_is_slower_and_the_same_for_the_same_seed) {
    const Job job = job_on("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core", "random:1");
    const Plan plan = plan_of(job, Collective::allgather, "ring", 65536);
    const auto seconds = [&](std::uint64_t seed) {
        FlowOptions options;
        options.traffic = parse_traffic("alltoall:half:64K");
        options.traffic.seed = seed;
        return flow(plan, job, {65536}, options).seconds;
    };
    EXPECT_GT(seconds(1), 1.2 * flow(plan, job, {65536}).seconds);
    EXPECT_EQ(seconds(1), seconds(1));
    EXPECT_NE(seconds(1), seconds(2));
}

TEST(Flow, lets_short_messages_go_before_their_receiver_is_there_and_long_ones_wait) {
    // Rank 1 combines its own two vectors for 1 s before it takes what rank 0 sends.
    const Job job = costed_job(R"({"name":"node"})", R"("reduce_bytes_per_s":1000)", 2, 1, 1000);
    Plan plan = plan_of(job, Collective::bcast, "linear", 1000);
    plan::ProgramBuilder builder(Rank{1});
    builder.stage("late");
    builder.reserve_scratch({0, 1});
    const plan::StepId done = builder.reduce(plan::Buffer::send, plan::Buffer::send, plan::Buffer::scratch, {0, 1}, {});
    builder.recv(Rank{0}, plan.programs[0].steps[0].tag, plan::Buffer::recv, {0, 1}, {done});
    plan.programs[1] = builder.finish();
    const auto seconds = [&](std::int64_t eager_bytes) {
        FlowOptions options;
        options.eager_bytes = eager_bytes;
        return flow(plan, job, {1000}, options).seconds;
    };
    EXPECT_DOUBLE_EQ(seconds(1000), 1);
    EXPECT_DOUBLE_EQ(seconds(999), 2);
}

TEST(Flow, of_a_plan_that_waits_for_itself_says_who_waits) {
    const Job job = job_on("2node@1B/s:1core");
    Plan plan = plan_of(job, Collective::allgather, "ring", 8);
    for (plan::Program& program : plan.programs) {
        plan::ProgramBuilder builder(program.rank);
        builder.stage("wait");
        const Rank other{1 - program.rank.value};
        const plan::StepId got = builder.recv(other, 0, plan::Buffer::recv, {0, 1}, {});
        builder.send(other, 0, plan::Buffer::recv, {0, 1}, {got});
        program = builder.finish();
    }
    EXPECT_THAT(error_of([&] { flow(plan, job, {8}); }), HasSubstr("the plan can't end: rank 0, step 0 (recv)"));
    FlowOptions loaded;
    loaded.traffic = parse_traffic("alltoall");
    EXPECT_THAT(error_of([&] { flow(plan, job, {8}, loaded); }), HasSubstr("the plan can't end"));
}

TEST(Flow, of_a_message_without_its_other_side_says_which) {
    const Job job = job_on("2node@1B/s:1core");
    Plan plan = plan_of(job, Collective::bcast, "linear", 8);
    plan.programs[1] = plan::ProgramBuilder(Rank{1}).finish();
    EXPECT_THAT(error_of([&] { flow(plan, job, {8}); }), HasSubstr("rank 0: a send, tag 0, is unmatched"));
}

TEST(FlowTraffic, is_read_from_a_text_and_told_what_is_wrong_with_it) {
    EXPECT_EQ(parse_traffic("").share, 0);
    EXPECT_EQ(parse_traffic("none").share, 0);
    EXPECT_EQ(parse_traffic("alltoall").share, 0.5);
    EXPECT_EQ(parse_traffic("alltoall:half:1M").bytes, 1 << 20);
    EXPECT_EQ(parse_traffic("alltoall:16K").bytes, 16384);
    EXPECT_EQ(parse_traffic("alltoall:0.25:64K@1MB/s").share, 0.25);
    EXPECT_EQ(parse_traffic("alltoall:0.25:64K@1MB/s").bytes_per_s, 1e6);
    EXPECT_THAT(error_of([] { parse_traffic("ring"); }), HasSubstr("'ring' is no pattern; expected alltoall"));
    EXPECT_THAT(error_of([] { parse_traffic("alltoall:1.5"); }), HasSubstr("at most 1"));
    EXPECT_THAT(error_of([] { parse_traffic("alltoall:64K:64K"); }), HasSubstr("second size"));
    EXPECT_THAT(error_of([] { parse_traffic("alltoall:half:0"); }), HasSubstr("at least a byte"));
}

}  // namespace
}  // namespace palmette::model
