// The postal model's bound: against known numbers, and against every way in which few ranks can tell each other.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "palmette/model/bound/bound.hpp"
#include "palmette/model/bound/spread.hpp"
#include "palmette/model/bound/spread_of_job.hpp"
#include "support/costed.hpp"
#include "support/jobs.hpp"

namespace palmette::model {
namespace {

using plan::Collective;

/// Members that one rank reaches by time t (in gaps), N(t) = N(t - 1) + N(t - latency).
int generalised_fibonacci(int t, int latency) {
    return t < latency ? 1 : generalised_fibonacci(t - 1, latency) + generalised_fibonacci(t - latency, latency);
}

TEST(LeastSpread, of_one_kind_of_messages_is_that_of_the_postal_model) {
    for (const int latency : {1, 2, 3, 5})
        for (const int members : {2, 3, 7, 20, 100}) {
            int t = 0;
            while (generalised_fibonacci(t, latency) < members) ++t;
            const PostalCosts costs{1e-6, latency * 1e-6};
            const SpreadShape groups{members, members, members};
            const SpreadShape nodes{members, members, 1, 1, members};
            const SpreadShape ranks{members, 1, 1, members, 1, members};
            EXPECT_NEAR(least_spread_s(groups, {{}, {}, costs}), t * 1e-6, 1e-12) << latency << " " << members;
            EXPECT_NEAR(least_spread_s(nodes, {{}, costs, {}}), t * 1e-6, 1e-12) << latency << " " << members;
            EXPECT_NEAR(least_spread_s(ranks, {costs, {}, {}}), t * 1e-6, 1e-12) << latency << " " << members;
        }
}

/// Where the ranks of a small job sit.
struct Seat {
    int group, node;
};

/// The least time, by trying all orders in which ranks can tell others.
double tried(const std::vector<Seat>& seats, const SpreadCosts& costs, std::vector<double> free_s,
             double so_far_s = 0) {
    double best = 1e9;
    bool all = true;
    for (std::size_t to = 0; to < seats.size(); ++to) {
        if (free_s[to] >= 0) continue;
        all = false;
        for (std::size_t from = 0; from < seats.size(); ++from) {
            if (free_s[from] < 0) continue;
            const PostalCosts& way = seats[from].group != seats[to].group ? costs.between_groups
                                     : seats[from].node != seats[to].node ? costs.between_nodes
                                                                          : costs.inside;
            std::vector<double> then = free_s;
            then[to] = free_s[from] + way.latency_s;
            then[from] += way.gap_s;
            best = std::min(best, tried(seats, costs, then, std::max(so_far_s, then[to])));
        }
    }
    return all ? so_far_s : best;
}

TEST(LeastSpread, is_beaten_by_no_order_in_which_ranks_can_tell_each_other) {
    std::mt19937 random(7);
    const auto cost = [&](int most) {
        return PostalCosts{1e-6 * static_cast<double>(1 + random() % static_cast<unsigned>(most)),
                           1e-6 * static_cast<double>(1 + random() % static_cast<unsigned>(2 * most))};
    };
    int met = 0, all = 0;
    for (int round = 0; round < 60; ++round) {
        const SpreadCosts costs{cost(3), cost(3), cost(5)};
        for (const auto& [groups, nodes, ranks] : std::vector<std::tuple<int, int, int>>{
                 {2, 1, 2}, {1, 2, 2}, {1, 3, 1}, {3, 1, 1}, {2, 2, 1}, {1, 1, 4}, {5, 1, 1}, {1, 1, 5}, {3, 1, 2}}) {
            std::vector<Seat> seats;
            for (int g = 0; g < groups; ++g)
                for (int n = 0; n < nodes; ++n)
                    for (int r = 0; r < ranks; ++r) seats.push_back({g, g * nodes + n});
            std::vector<double> free_s(seats.size(), -1);
            free_s[0] = 0;
            const SpreadShape shape{groups * nodes * ranks, groups * nodes, groups, ranks, nodes, ranks, nodes, ranks};
            const double least_s = least_spread_s(shape, costs);
            const double best_s = tried(seats, costs, free_s);
            EXPECT_LE(least_s, best_s + 1e-12) << round << ": " << groups << " " << nodes << " " << ranks;
            EXPECT_GE(least_s, 0.25 * best_s);
            met += least_s > best_s - 1e-12, ++all;
        }
    }
    EXPECT_GT(met, all / 2);  // and most often it is what can be done
}

TEST(LeastSpread, follows_from_nothing_where_a_message_between_nodes_costs_nothing) {
    EXPECT_EQ(least_spread_s({9, 9, 9}, {{}, {}, {0, 1e-6}}), 0);
    EXPECT_EQ(least_spread_s({9, 9, 9}, {{}, {}, {1e-6, 0}}), 0);
}

topology::Job costed() {
    return test::costed_job(
        R"({"name":"node","latency_s":1e-6,"overhead_s":5e-7},{"name":"core","latency_s":2e-7,"overhead_s":1e-7})", "",
        8, 4);
}

TEST(SpreadOfAJob, takes_longer_with_longer_gaps_and_from_them_the_collective_takes_its_own) {
    BoundOptions options{{}, 0, true, {}};
    options.ends = {{1e-7, 3e-7}, {1e-7, 6e-7}};
    const auto spread = [&](Collective collective) {
        return bound_terms(costed(), {collective, topology::Rank{5}, 8}, {8}, options).rounds.spread_s;
    };
    EXPECT_GT(spread(Collective::bcast), 1.8e-6);
    EXPECT_DOUBLE_EQ(spread(Collective::scatter), spread(Collective::bcast));
    EXPECT_GT(spread(Collective::reduce), spread(Collective::bcast));
    EXPECT_DOUBLE_EQ(spread(Collective::gather), spread(Collective::reduce));
    for (const Collective both : {Collective::allreduce, Collective::allgather, Collective::barrier, Collective::scan})
        EXPECT_DOUBLE_EQ(spread(both), spread(Collective::reduce));
}

TEST(SpreadOfAJob, is_told_only_where_ranks_of_a_node_have_messages_alone) {
    const auto rounds = [&](bool messages_only) {
        return bound_terms(costed(), {Collective::bcast, topology::Rank{0}, 8}, {8}, {{}, 0, messages_only, {}}).rounds;
    };
    EXPECT_EQ(rounds(false).spread_s, 0);
    EXPECT_GT(rounds(true).spread_s, 0);
    EXPECT_GE(rounds(true).seconds, rounds(true).spread_s);
}

TEST(SpreadOfAJob, of_many_nodes_below_a_switch_counts_each_node_as_a_group_and_is_no_larger) {
    const topology::Job few = test::job_on("2leaf~3us:8node~2us:4core~1us");
    const topology::Job many = test::job_on("2leaf~3us:300node~2us:4core~1us");
    const Gaps gaps{2e-7, 4e-7};
    EXPECT_GT(spread_s(few, {0}, gaps), 3e-6);
    EXPECT_GT(spread_s(many, {0}, gaps), spread_s(few, {0}, gaps));
    EXPECT_EQ(spread_s(test::job_on("2leaf:8node:4core"), {0}, gaps), 0);
}

}  // namespace
}  // namespace palmette::model
