// How soon a vector can be everywhere: what is known by hand, and no schedule that ranks can follow is faster.
#include "palmette/model/bound/delivery.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "palmette/base/text.hpp"
#include "support/jobs.hpp"

namespace palmette::model {
namespace {

constexpr double us = 1e-6;
constexpr DeliveryCosts costs_of_messages{{0.1 * us, 0.3 * us}, 0.5 * us, 1.5 * us, 2.5 * us, 1e9};

TEST(Delivery, of_one_message_takes_its_latency_and_of_bytes_their_links) {
    EXPECT_NEAR(least_delivery_s({1, 1, 1, 1, 1, 1}, costs_of_messages, 0), 2.5 * us, 1e-12);
    // Sixteen copies of 100 ns each leave the root's host, until others have heard and help.
    EXPECT_GT(least_delivery_s({16, 1, 16, 16, 1, 1}, costs_of_messages, 100), 2.5 * us + 16 * 0.1 * us);
}

TEST(Delivery, to_ranks_of_one_host_is_as_in_the_postal_model) {
    // The host is entered after 2.5 us; N(t) = N(t - 0.1) + N(t - 0.5) reaches 16 after another 1.3.
    const double found_s = least_delivery_s({1, 1, 1, 1, 16, 16}, costs_of_messages, 0);
    EXPECT_GT(found_s, 3.3 * us);
    EXPECT_LE(found_s, 3.8 * us);
}

TEST(Delivery, to_more_hosts_or_of_more_bytes_takes_longer) {
    double shorter_s = 0;
    for (const std::int32_t hosts : {1, 4, 16, 64, 256}) {
        const double found_s = least_delivery_s({16, 1, 16, hosts, 16, 16}, costs_of_messages, 512);
        EXPECT_GT(found_s, std::exchange(shorter_s, found_s)) << hosts;
    }
    shorter_s = 0;
    for (const double bytes : {8, 64, 512, 4096}) {
        const double found_s = least_delivery_s({16, 4, 16, 29, 8, 8}, costs_of_messages, bytes);
        EXPECT_GT(found_s, std::exchange(shorter_s, found_s)) << bytes;
    }
}

TEST(Delivery, is_not_bounded_where_a_message_costs_nothing_or_everybody_is_at_home) {
    EXPECT_EQ(least_delivery_s({2, 1, 2, 3, 2, 2}, {{0, 1}, 1, 1, 1, 1e9}, 8), 0);
    EXPECT_EQ(least_delivery_s({2, 1, 2, 3, 2, 2}, {{1e-12, 1}, 1, 1, 1, 1e9}, 8), 0);
    EXPECT_EQ(least_delivery_s({2, 4, 2, 0, 0, 0}, costs_of_messages, 8), 0);
}

TEST(Delivery, that_takes_long_is_bounded_as_far_as_it_is_looked_at) {
    const double found_s = least_delivery_s({1, 1, 1, 400, 1, 1}, costs_of_messages, 1e9);  // 400 copies of a second
    EXPECT_GT(found_s, 50 * us);
    EXPECT_LT(found_s, 1.0);
}

/// Where the ranks of a job sit: in `groups` of `hosts` of `ranks`.
struct Seats {
    int groups, hosts, ranks;
    int count() const { return groups * hosts * ranks; }
    int host_of(int rank) const { return rank / ranks; }
    int group_of(int rank) const { return rank / ranks / hosts; }
};

/// The time of some schedule: each message has the whole vector, and those of a host leave one after the other.
double schedule_s(const Seats& seats, double bytes, std::mt19937& dice) {
    const DeliveryCosts& costs = costs_of_messages;
    std::map<int, double> heard_s{{0, 0.0}}, free_s{{0, 0.0}}, link_s;
    while (static_cast<int>(heard_s.size()) < seats.count()) {
        std::vector<int> senders, others;
        for (int rank = 0; rank < seats.count(); ++rank) (heard_s.count(rank) ? senders : others).push_back(rank);
        std::stable_sort(senders.begin(), senders.end(), [&](int a, int b) { return free_s[a] < free_s[b]; });
        const int source = senders[dice() % std::min<std::size_t>(senders.size(), 1 + dice() % 3)];
        const int target = others[dice() % others.size()];
        if (seats.host_of(source) == seats.host_of(target)) {
            heard_s[target] = free_s[source] + costs.inside_latency_s;
            free_s[source] += costs.gaps.inside_s;
        } else {
            double& link = link_s[seats.host_of(source)];
            link = std::max(free_s[source], link) + bytes / costs.link_bytes_per_s;
            const bool near = seats.group_of(source) == seats.group_of(target);
            heard_s[target] = link + (near ? costs.near_latency_s : costs.far_latency_s);
            free_s[source] += costs.gaps.between_s;
        }
        free_s[target] = heard_s[target];
    }
    double last_s = 0;
    for (const auto& [rank, at_s] : heard_s) last_s = std::max(last_s, at_s);
    return last_s;
}

TEST(Delivery, is_as_fast_by_no_schedule) {
    std::mt19937 dice(3);
    for (const Seats& seats : {Seats{1, 5, 3}, Seats{2, 3, 2}, Seats{3, 2, 2}, Seats{1, 4, 1}, Seats{2, 4, 4}})
        for (const double bytes : {0, 64, 1000}) {
            const topology::Job job = test::job_on(
                base::cat(seats.groups, "leaf@10GB/s~2.5us:", seats.hosts, "node@1GB/s~1.5us:", seats.ranks, "core"));
            const double least_s =
                delivery_s(job, {0}, costs_of_messages.gaps, costs_of_messages.inside_latency_s, bytes);
            double best_s = schedule_s(seats, bytes, dice);
            for (int draw = 1; draw < 500; ++draw) best_s = std::min(best_s, schedule_s(seats, bytes, dice));
            EXPECT_LE(least_s, best_s) << seats.groups << " " << seats.hosts << " " << seats.ranks << " " << bytes;
            EXPECT_GT(least_s, 0.3 * best_s) << seats.groups << " " << seats.hosts << " " << seats.ranks;
        }
}

}  // namespace
}  // namespace palmette::model
