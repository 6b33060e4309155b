// Bounds, predictions and flows of allreduces through aggregators.
#include <gmock/gmock.h>

#include "palmette/collectives/registry.hpp"
#include "palmette/model/bound/bound.hpp"
#include "palmette/model/flow/flow.hpp"
#include "palmette/model/play/predict.hpp"
#include "support/jobs.hpp"

namespace palmette::model {
namespace {

using plan::Collective;
using plan::Request;
using test::job_on;
using topology::Job;

constexpr std::int64_t vector_bytes = 1 << 18;

BoundTerms terms_of(const Job& job, std::int64_t bytes = vector_bytes) {
    return bound_terms(job, {Collective::allreduce, plan::Rank{0}, bytes}, {bytes});
}

/// Bound through the network over that of hosts alone.
double gain(const char* machine) {
    const BoundTerms terms = terms_of(job_on(machine));
    return terms.limit_in_network.seconds / terms.limit.seconds;
}

TEST(Aggregators, bound_an_allreduce_by_their_links_and_the_groups_edges_together) {
    // One whose link is no limit: k n instead of 2 (k - 1) n.
    EXPECT_NEAR(gain("aggregator:3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"), 0.75, 1e-9);
    EXPECT_NEAR(gain("aggregator:4leaf@50Mbit/s:2node@100Mbit/s:2core"), 2.0 / 3, 1e-9);
    EXPECT_NEAR(gain("aggregator:8node@50Mbit/s:2core"), 4.0 / 7, 1e-9);
    // Else (k / r) / (k / r + (k - 2) / k) of the hosts' time.
    EXPECT_NEAR(gain("aggregator@50Mbit/s:8node@50Mbit/s:2core"), 0.914, 5e-4);
    EXPECT_NEAR(gain("aggregator@100Mbit/s:8node@50Mbit/s:2core"), 0.842, 5e-4);
    EXPECT_NEAR(gain("aggregator@200Mbit/s:8node@50Mbit/s:2core"), 0.727, 5e-4);
    EXPECT_NEAR(gain("aggregator@400Mbit/s:8node@50Mbit/s:2core"), 0.571, 5e-4);
    EXPECT_NEAR(gain("aggregator@100Mbit/s+aggregator@100Mbit/s:8node@50Mbit/s:2core"), 0.727, 5e-4);
    // Two groups gain nothing, nor does an aggregator inside of a group for the links between groups.
    EXPECT_NEAR(gain("aggregator:2node@50Mbit/s:2core"), 1, 1e-9);
    EXPECT_NEAR(gain("4leaf@50Mbit/s+aggregator:2node@400Mbit/s"), 1, 1e-9);
    // Without any listed, every switch reduces.
    EXPECT_NEAR(gain("8node@50Mbit/s:2core"), 4.0 / 7, 1e-9);
}

TEST(Aggregators, are_named_as_what_bounds) {
    const BoundTerms terms = terms_of(job_on("aggregator@100Mbit/s:8node@50Mbit/s:2core"));
    EXPECT_EQ(terms.limit_in_network.kind, "aggregators");
    EXPECT_EQ(terms.limit_in_network.level, "node");
    EXPECT_EQ(terms.limit_in_network.bytes, 14 * vector_bytes);
    EXPECT_DOUBLE_EQ(terms.limit_in_network.capacity_bytes_per_s, 8 * 6.25e6 + 12.5e6 * 6 / 8);
    EXPECT_EQ(terms.limit.kind, "links");
}

/// Seconds over the bound through the network, and over that of hosts alone.
struct Multiple {
    double network, hosts;
};

Multiple predicted(const char* machine, const char* spec, std::int64_t bytes) {
    const Job job = job_on(machine);
    const Request request{Collective::allreduce, plan::Rank{0}, bytes, 8};
    const double seconds = predict(job, request, collectives::Spec::parse(spec), Costs::of(job)).seconds;
    const BoundTerms terms = terms_of(job, bytes);
    return {seconds / terms.limit_in_network.seconds, seconds / terms.limit.seconds};
}

Multiple flowed(const char* machine, const char* spec, std::int64_t bytes) {
    const Job job = job_on(machine);
    const Request request{Collective::allreduce, plan::Rank{0}, bytes, 8};
    const double seconds =
        flow(collectives::make_plan(job, request, collectives::Spec::parse(spec)), job, {bytes}, {}).seconds;
    const BoundTerms terms = terms_of(job, bytes);
    return {seconds / terms.limit_in_network.seconds, seconds / terms.limit.seconds};
}

TEST(Aggregators, limit_a_played_plan_by_their_links) {
    // All through a link as fast as a node's: 8 n over it.
    const char* const slow = "aggregator@50Mbit/s:8node@50Mbit/s:2core";
    for (const auto& play : {predicted, flowed}) {
        const Multiple all = play(slow, "in_network:share=100", vector_bytes);
        EXPECT_GE(all.hosts, 8 / 1.75 - 1e-6);
        EXPECT_LT(all.hosts, 1.4 * 8 / 1.75);
    }
}

TEST(Aggregators, and_hosts_share_a_vector_near_the_bound) {
    for (const char* machine :
         {"aggregator:8node@50Mbit/s:2core", "aggregator@100Mbit/s:8node@50Mbit/s:2core",
          "aggregator@200Mbit/s:8node@50Mbit/s:2core", "aggregator:3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"})
        for (const auto& play : {predicted, flowed}) {
            const Multiple split = play(machine, "in_network", 16 << 20);
            EXPECT_GE(split.network, 1 - 1e-6) << machine;
            EXPECT_LT(split.network, 1.3) << machine;
        }
}

}  // namespace
}  // namespace palmette::model
