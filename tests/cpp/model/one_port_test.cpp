// The bounds with one message at a time: against every schedule of few members, and in the terms of a job.
#include "palmette/model/bound/one_port.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "palmette/collectives/registry.hpp"
#include "palmette/model/bound/bound.hpp"
#include "palmette/plan/count.hpp"
#include "support/jobs.hpp"

namespace palmette::model {
namespace {

using plan::Collective;

/// Bit b of a member's number: it has block b.
using Holdings = std::vector<unsigned>;

/// All holdings after one more round, in which each member sends at most one block and receives at most one.
void add_rounds(const Holdings& before, const Holdings& now, std::size_t to, unsigned senders, unsigned blocks,
                std::set<Holdings>& after) {
    if (to == now.size()) {
        // Members but the root are alike.
        Holdings sorted = now;
        std::sort(sorted.begin() + 1, sorted.end());
        after.insert(sorted);
        return;
    }
    add_rounds(before, now, to + 1, senders, blocks, after);
    for (std::size_t from = 0; from < now.size(); ++from)
        for (unsigned block = 0; block < blocks; ++block) {
            if ((senders >> from & 1U) || !(before[from] >> block & 1U) || (before[to] >> block & 1U)) continue;
            Holdings then = now;
            then[to] |= 1U << block;
            add_rounds(before, then, to + 1, senders | 1U << from, blocks, after);
        }
}

std::int64_t fewest_rounds(std::size_t members, unsigned blocks) {
    Holdings first(members, 0);
    first.front() = (1U << blocks) - 1;
    const Holdings last(members, first.front());
    std::set<Holdings> reached{first};
    for (std::int64_t round = 0;; ++round) {
        if (reached.count(last)) return round;
        std::set<Holdings> next;
        for (const Holdings& one : reached) add_rounds(one, one, 1, 0, blocks, next);
        reached = std::move(next);
    }
}

TEST(OnePort, no_schedule_of_few_members_broadcasts_in_fewer_rounds) {
    for (const auto& [members, blocks] : std::vector<std::pair<std::size_t, unsigned>>{
             {2, 1}, {2, 3}, {3, 1}, {3, 2}, {3, 3}, {4, 1}, {4, 2}, {4, 3}, {5, 1}, {5, 2}, {6, 1}, {6, 2}})
        EXPECT_EQ(fewest_rounds(members, blocks), blocks - 1 + doublings(static_cast<std::int64_t>(members)))
            << members << " members, " << blocks << " blocks";
}

/// What a member knows, and when its ports are free again.
struct Member {
    unsigned knows;
    double since, may_send, may_receive;
};

/// The least time until member 0 knows all blocks, by trying all sequences of messages with any of a sender's blocks.
void gather_all(const std::vector<Member>& members, double latency, double& best) {
    const unsigned all = (1U << members.size()) - 1;
    if (members[0].knows == all) best = std::min(best, members[0].since);
    if (members[0].knows == all) return;
    for (std::size_t from = 1; from < members.size(); ++from)
        for (std::size_t to = 0; to < members.size(); ++to) {
            const unsigned fresh = members[from].knows & ~members[to].knows;
            for (unsigned sent = fresh; sent != 0 && to != from; sent = (sent - 1) & fresh) {
                const double begin = std::max({members[from].may_send, members[from].since, members[to].may_receive});
                const double end = begin + latency + __builtin_popcount(sent);
                if (end >= best) continue;
                std::vector<Member> then = members;
                then[from].may_send = then[to].may_receive = then[to].since = end;
                then[to].knows |= sent;
                gather_all(then, latency, best);
            }
        }
}

TEST(OnePort, no_sequence_of_messages_of_few_members_collects_sooner) {
    for (const std::size_t count : {2U, 3U, 4U})
        for (const double latency : {0.5, 1.0, 3.0}) {
            std::vector<Member> members;
            for (std::size_t i = 0; i < count; ++i) members.push_back({1U << i, 0, 0, 0});
            double best = 1e9;
            gather_all(members, latency, best);
            EXPECT_DOUBLE_EQ(best, least_collecting_s({static_cast<std::int64_t>(count), latency, 1}, 1))
                << count << " members, latency " << latency;
        }
}

TEST(OnePort, takes_the_number_of_blocks_that_is_best) {
    for (const std::int64_t members : {2, 3, 7, 16, 100, 1000})
        for (const std::int64_t bytes : {1, 64, 1000, 16384, 1 << 20}) {
            const OnePort port{members, 50e-6, 12.5e6};
            double best = 1e9;
            for (std::int64_t n = 1; n <= std::min<std::int64_t>(bytes / 8 + (bytes < 8), 4096); ++n)
                best = std::min(best, static_cast<double>(n - 1 + doublings(members)) *
                                          (50e-6 + static_cast<double>(bytes) / static_cast<double>(n) / 12.5e6));
            EXPECT_NEAR(least_rounds(port, bytes, 8).seconds, best, 1e-9 * best) << members << ' ' << bytes;
        }
    EXPECT_EQ(least_rounds({8, 1e-6, 0}, 1 << 20).blocks, 1) << "without a rate blocks cost latency only";
    EXPECT_EQ(least_rounds({1, 1e-6, 1e9}, 1 << 20).seconds, 0);
}

TEST(OnePort, circulant_graphs_reach_its_rounds) {
    for (const std::int32_t p : {3, 8, 13})
        for (const Collective collective : {Collective::bcast, Collective::reduce}) {
            const std::string text = "circulant:segments=5";
            const topology::Job job = topology::Job::flat(p);
            const plan::Request request{collective, topology::Rank{0}, 40};
            const plan::PlanCount made =
                plan::count(collectives::make_plan(job, request, collectives::Spec::parse(text)), job, {40});
            EXPECT_LE(made.longest_chain, 5 - 1 + doublings(p));
        }
}

TEST(OnePort, stands_beside_the_limits_of_a_job) {
    const topology::Job job = test::job_on("2leaf@50Mbit/s~300us:3node@100Mbit/s~200us:2core");
    const auto terms = [&](Collective collective, std::int64_t bytes) {
        return bound_terms(job, {collective, topology::Rank{0}, bytes}, {bytes});
    };
    const OnePortTerm bcast = terms(Collective::bcast, 16384).one_port;
    EXPECT_EQ(bcast.members, 6);
    EXPECT_EQ(bcast.rounds, bcast.blocks - 1 + 3);
    EXPECT_DOUBLE_EQ(bcast.seconds, least_rounds({6, 200e-6, 12.5e6}, 16384).seconds);
    EXPECT_DOUBLE_EQ(terms(Collective::reduce, 16384).one_port.seconds, bcast.seconds);
    EXPECT_DOUBLE_EQ(terms(Collective::allgather, 100).one_port.seconds, 3 * 200e-6 + 5 * 200 / 12.5e6);
    EXPECT_DOUBLE_EQ(terms(Collective::alltoall, 100).one_port.seconds, 3 * 200e-6 + 5 * 400 / 12.5e6);
    EXPECT_DOUBLE_EQ(terms(Collective::barrier, 0).one_port.seconds, 3 * 200e-6);
    EXPECT_EQ(terms(Collective::bcast, 0).one_port.seconds, 0) << "nothing moves";
    const topology::Job unknown = test::job_on("2leaf@50Mbit/s:3node@100Mbit/s:2core");
    EXPECT_EQ(bound_terms(unknown, {Collective::bcast, topology::Rank{0}, 64}, {64}).one_port.seconds, 0)
        << "no latency is known";
}

}  // namespace
}  // namespace palmette::model
