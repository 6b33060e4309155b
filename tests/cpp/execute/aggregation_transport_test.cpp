// Plans through a daemon of this process: right, with the same bits as the hosts', and whatever happens to the daemon
// all ranks end and agree.
#include "palmette/execute/aggregation_transport.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "aggregate/harness.hpp"
#include "palmette/aggregate/client/client.hpp"
#include "palmette/aggregate/kept/courier.hpp"
#include "palmette/collectives/exchanges/network_share.hpp"
#include "palmette/collectives/registry.hpp"
#include "support/jobs.hpp"
#include "support/loopback.hpp"

namespace palmette::execute {
namespace {

using aggregate::kept::Courier;
using aggregate::kept::Peers;
using collectives::Spec;
using test::LoopbackRank;
using test::LoopbackRanks;

/// Sums of doubles: the result depends on the brackets.
class Doubles final : public HostMemory {
  public:
    int combine(std::uint8_t, const char* left, const char* right, char* target, std::int64_t bytes) override {
        kernels::kernel_for(kernels::Operator::sum, kernels::Element::float64)(left, right, target,
                                                                               static_cast<std::size_t>(bytes / 8));
        return 0;
    }
    std::int64_t element_bytes(std::uint8_t) const override { return 8; }
};

/// A job's ranks with a daemon for all of its aggregators.
class Ranks {
  public:
    explicit Ranks(const std::string& machine, std::uint64_t seed = 1)
        : job(test::job_on(machine, "random:3")),
          channels(static_cast<std::size_t>(job.size())),
          loopback(job.size(), seed, false,
                   [this](std::int32_t, Messages& messages) {
                       auto made = std::make_unique<AggregationTransport>(messages);
                       transports.push_back(made.get());
                       return made;
                   }),
          random_(seed) {
        for (std::int32_t r = 0; r < job.size(); ++r) trees.push_back(agreement_tree(job, topology::Rank{r}));
        start_daemon();
        loopback.between_turns = [this] {
            if (daemon) daemon->turn(0);
            if (++turns == disturb_at) disturb();
        };
    }

    void start_daemon() { daemon = std::make_unique<aggregate::Daemon>(aggregate::testing::settings()); }

    std::vector<LoopbackRank> bind_all(const Spec& spec, std::int64_t count, bool in_place) {
        const plan::Request request{plan::Collective::allreduce, plan::Rank{0}, count * 8, 8, false, false};
        std::vector<LoopbackRank> all;
        for (std::int32_t r = 0; r < job.size(); ++r) {
            const auto i = static_cast<std::size_t>(r);
            Layout layout;
            layout.uniform_bytes = request.block_bytes;
            layout.element_bytes = 8;
            layout.transports = &loopback.executors[i]->transports();
            LoopbackRank& one = all.emplace_back();
            one.program =
                bind(request.collective, collectives::make_program(job, plan::Rank{r}, request, spec), job, layout);
            one.program.keeps = collectives::in_network_keeps(request, spec);
            add_agreement(one.program, job.size(), 0);
            one.program.agreement_tag = static_cast<std::int32_t>(collectives::tag_limit(job, request, spec));
            outputs[i] = in_place ? inputs[i] : std::vector<double>(static_cast<std::size_t>(count), -1);
            char* const out = reinterpret_cast<char*>(outputs[i].data());
            one.environment.bases = {in_place ? out : reinterpret_cast<char*>(inputs[i].data()), out};
            one.environment.memory = &memory;
        }
        return all;
    }

    void fill(std::int64_t count) {
        inputs.assign(channels.size(), {});
        outputs.assign(channels.size(), {});
        for (auto& input : inputs)
            for (std::int64_t i = 0; i < count; ++i) input.push_back(std::ldexp(static_cast<double>(random_()), -3));
    }

    /// Members of new groups of all channels; `shape` in each.
    void join(const std::vector<LoopbackRank>& all, const aggregate::Shape& shape) {
        ++group_;
        const topology::Partition& groups =
            job.levels()[collectives::network_level(job, Spec::parse("in_network"))].groups;
        for (std::size_t r = 0; r < all.size(); ++r) {
            channels[r].clear();
            for (const auto& [peer, channel] : channels_of(all[r].program, job.size())) {
                aggregate::Membership with;
                with.daemon = {"127.0.0.1", daemon->port()};
                with.token = aggregate::testing::make_token();
                const auto number = static_cast<std::uint64_t>(group_ * 1000 + peer * 100 + channel);
                with.invitation =
                    invitations_.try_emplace(number, *aggregate::invite(*with.token, number, 1)).first->second;
                with.levels.count = 1;
                with.levels.at[0] = {static_cast<std::uint16_t>(groups.count()),
                                     static_cast<std::uint16_t>(groups.group_of(
                                         job.position_of(topology::Rank{static_cast<std::int32_t>(r)}).value))};
                with.shape = shape;
                auto client = std::make_unique<aggregate::Client>(with, aggregate::testing::quick());
                client->start();
                channels[r].push_back({peer, channel, std::move(client)});
            }
        }
        const auto all_ready = [&] {
            for (const auto& of_rank : channels)
                for (const auto& one : of_rank)
                    if (!one.service->ready()) return false;
            return true;
        };
        for (int turn = 0; turn < 100'000 && !all_ready(); ++turn) {
            daemon->turn(0);
            for (const auto& of_rank : channels)
                for (const auto& one : of_rank) one.service->progress();
        }
        ASSERT_TRUE(all_ready());
    }

    /// Members that keep results for each other, from now on.
    void meet() {
        close();
        const std::size_t level = collectives::network_level(job, Spec::parse("in_network"));
        const std::int32_t groups = job.levels()[level].groups.count();
        owners.clear();
        for (std::int32_t g = 0; g < groups; ++g) owners.push_back(collectives::in_network_owner(job, level, g).value);
        aggregate::kept::Opening opening;
        std::string why;
        const auto count = static_cast<std::uint32_t>(owners.size());
        for (std::uint32_t m = 0; m < count; ++m)
            peers.push_back(m == 0 ? Peers::open(count, opening, why) : Peers::join(m, count, opening, why));
        const auto all_have_met = [&] {
            return std::ranges::count_if(peers, [](const auto& one) { return one->meet(); }) == count;
        };
        while (!all_have_met()) std::this_thread::yield();
    }
    void close() {
        for (const auto& one : peers) one->close();
        peers.clear();
    }
    ~Ranks() { close(); }

    /// Runs what was bound; every rank must end.
    void run(std::vector<LoopbackRank>& all, bool aggregated) {
        for (std::size_t r = 0; r < all.size(); ++r) {
            std::optional<KeptGroup> kept;
            if (!peers.empty()) {
                const auto at = std::ranges::find(owners, static_cast<std::int32_t>(r));
                kept = {at == owners.end() ? nullptr : peers[static_cast<std::size_t>(at - owners.begin())].get(),
                        owners};
            }
            transports[r]->use(aggregated ? &channels[r] : nullptr, &trees[r],
                               {kernels::Operator::sum, kernels::Element::float64}, false,
                               aggregated ? kept : std::nullopt);
        }
        loopback.waits_for_time = !peers.empty();
        for (const int code : loopback.run(all)) ASSERT_EQ(code, 0);
        ASSERT_TRUE(loopback.world.nothing_is_left());
        ASSERT_EQ(loopback.world.wrong_lengths, 0);
    }

    topology::Job job;
    std::vector<std::vector<AggregationChannel>> channels;
    std::vector<AgreementTree> trees;
    std::vector<std::int32_t> owners;
    std::vector<std::shared_ptr<Peers>> peers;
    std::vector<AggregationTransport*> transports;
    LoopbackRanks loopback;
    std::unique_ptr<aggregate::Daemon> daemon;
    Doubles memory;
    std::vector<std::vector<double>> inputs, outputs;
    std::int64_t turns = 0, disturb_at = -1;
    std::function<void()> disturb;

  private:
    std::mt19937_64 random_;
    std::int64_t group_ = 0;
    std::map<std::uint64_t, aggregate::Invitation> invitations_;
};

std::vector<std::vector<double>> by_hosts(Ranks& ranks, const std::string& spec, std::int64_t count) {
    auto all = ranks.bind_all(collectives::network_by_hosts(Spec::parse(spec)), count, false);
    ranks.run(all, false);
    return ranks.outputs;
}

TEST(AggregationTransport, has_the_bits_of_the_same_plan_by_hosts) {
    for (const char* machine :
         {"aggregator:4node:2core", "aggregator@30Mbit/s+aggregator@50Mbit/s:5node@50Mbit/s:1+3core",
          "aggregator@1GB/s:3leaf@1GB/s:3+3+2node@2GB/s:2core"}) {
        Ranks ranks(machine);
        for (const char* spec : {"in_network:segment=256", "in_network:share=40,segment=512,window=1"})
            for (const std::int64_t count : {0, 1, 7, 1000}) {
                ranks.fill(count);
                const auto expected = by_hosts(ranks, spec, count);
                for (const bool in_place : {false, true}) {
                    auto all = ranks.bind_all(Spec::parse(spec), count, in_place);
                    ranks.join(all, aggregate::testing::shape(256, 3));
                    // Several operations of one group, with the chunks' numbers going on.
                    for (int again = 0; again < 3; ++again) {
                        if (in_place) ranks.outputs = ranks.inputs;
                        for (std::size_t r = 0; r < all.size(); ++r)
                            if (in_place)
                                all[r].environment.bases.send = all[r].environment.bases.recv =
                                    reinterpret_cast<char*>(ranks.outputs[r].data());
                        ranks.run(all, true);
                        for (std::size_t r = 0; r < all.size(); ++r) {
                            ASSERT_EQ(ranks.transports[r]->agreed(), 0) << machine << ' ' << spec << ' ' << count;
                            ASSERT_EQ(ranks.outputs[r], expected[r]) << machine << ' ' << spec << ' ' << count;
                        }
                    }
                }
            }
    }
}

TEST(AggregationTransport, ends_on_all_ranks_whenever_the_daemon_dies) {
    Ranks ranks("aggregator:4node:2core", 5);
    constexpr std::int64_t count = 600;
    ranks.fill(count);
    const auto expected = by_hosts(ranks, "in_network:segment=512", count);
    int failed = 0, succeeded = 0;
    ranks.disturb = [&] { ranks.daemon.reset(); };
    for (std::int64_t at = 1; at < 600; at += 7) {
        if (!ranks.daemon) ranks.start_daemon();
        auto all = ranks.bind_all(Spec::parse("in_network:segment=512"), count, false);
        ranks.join(all, aggregate::testing::shape(512, 2));
        ranks.turns = 0;
        ranks.disturb_at = at;
        ranks.run(all, true);
        ranks.disturb_at = -1;
        const std::int64_t agreed = ranks.transports[0]->agreed();
        (agreed == 0 ? succeeded : failed) += 1;
        for (std::size_t r = 0; r < all.size(); ++r) {
            ASSERT_EQ(ranks.transports[r]->agreed(), agreed) << at;
            ASSERT_TRUE(agreed < 0 || ranks.outputs[r] == expected[r]) << at;
        }
        if (agreed < 0) {
            const std::int32_t finder = rank_in(agreed);
            ASSERT_GE(finder, 0);
            ASSERT_LT(finder, ranks.job.size());
            EXPECT_TRUE(ranks.transports[static_cast<std::size_t>(finder)]->failure());
        }
    }
    EXPECT_GT(failed, 5);
    EXPECT_GT(succeeded, 0);
}

/// Three short operations, during which the daemon may die; then they must be the hosts'.
void run_short(Ranks& ranks, std::vector<LoopbackRank>& all, const std::vector<std::vector<double>>& expected) {
    for (int again = 0; again < 3; ++again) {
        for (auto& output : ranks.outputs) std::ranges::fill(output, -1);
        ranks.run(all, true);
        for (std::size_t r = 0; r < all.size(); ++r) ASSERT_EQ(ranks.outputs[r], expected[r]) << ranks.disturb_at;
    }
}

TEST(AggregationTransport, ends_short_operations_right_on_all_ranks_whenever_the_daemon_dies) {
    for (const unsigned lost : {0U, 3U})
        for (const char* machine : {"aggregator:4node:2core", "aggregator:5node:1+3core", "aggregator:3node"}) {
            Ranks ranks(machine, 5);
            constexpr std::int64_t count = 100;
            ranks.fill(count);
            const auto expected = by_hosts(ranks, "in_network:keep=yes", count);
            std::uint64_t by_hosts = 0, given = 0, undisturbed = 0;
            ranks.disturb = [&] { ranks.daemon.reset(); };
            for (std::int64_t at = 1; at < 300; at += lost > 0 ? 61 : 7) {
                if (!ranks.daemon) ranks.start_daemon();
                auto all = ranks.bind_all(Spec::parse("in_network:keep=yes"), count, false);
                ASSERT_TRUE(all[0].program.keeps);
                ranks.join(all, aggregate::testing::shape(1024, 2));
                ranks.meet();
                Courier::instance().lost_of.store(lost);
                ranks.turns = 0;
                ranks.disturb_at = at;
                run_short(ranks, all, expected);
                ranks.disturb_at = -1;
                Courier::instance().lost_of.store(0);
                by_hosts += ranks.peers[0]->by_hosts();
                given += ranks.peers[0]->given();
                if (!ranks.peers[0]->frozen()) ++undisturbed;
            }
            EXPECT_GT(by_hosts + given, 0U) << machine;
            EXPECT_TRUE(lost > 0 || undisturbed > 0) << machine;
        }
}

TEST(AggregationTransport, prefers_the_failure_that_tells_more) {
    using aggregate::Reason;
    EXPECT_EQ(agreement_code(Reason::none, 3), 0);
    EXPECT_LT(agreement_code(Reason::silent, 0), agreement_code(Reason::member_lost, 1 << 30));
    EXPECT_EQ(rank_in(agreement_code(Reason::damaged, 123456)), 123456);
    EXPECT_EQ(rank_in(agreement_code(Reason::left, 0)), 0);
}

}  // namespace
}  // namespace palmette::execute
