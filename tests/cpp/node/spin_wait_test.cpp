#include "palmette/node/spin_wait.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "support/processes.hpp"
#include "support/shared_nodes.hpp"

namespace palmette::node {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration;
using std::chrono::milliseconds;

struct PauseCounts {
    int pauses = 0;
    int progress = 0;  ///< pauses that asked for progress
};

PauseCounts pause_for(SpinWait& spin_wait, milliseconds length) {
    PauseCounts out;
    spin_wait.reset();
    for (const auto end = Clock::now() + length; Clock::now() < end; ++out.pauses)
        out.progress += spin_wait.pause() ? 1 : 0;
    return out;
}

double processor_s() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(SpinWait, gives_the_core_away_in_a_long_wait) {
    for (const int cores : {1, 2}) {
        SpinWait spin_wait(2, cores);
        const double before = processor_s();
        pause_for(spin_wait, milliseconds(300));
        EXPECT_LT(processor_s() - before, 0.15) << cores << " cores for 2 ranks";
    }
}

TEST(SpinWait, does_not_sleep_in_a_short_wait_on_a_core_of_its_own) {
    // Others may use the machine: one undisturbed millisecond of many is enough.
    int most = 0;
    for (int i = 0; i < 200 && most <= 100; ++i) {
        SpinWait spin_wait(1, 1);
        most = std::max(most, pause_for(spin_wait, milliseconds(1)).pauses);
    }
    EXPECT_GT(most, 100) << "with naps of 50 us there would be twenty";
}

TEST(SpinWait, is_replaced_where_no_time_passes_while_a_rank_polls) {
    struct PauseCounter final : Pauses {
        bool pause() override { return ++pauses == 2; }
        int pauses = 0;
    } counted;
    SpinWait spin_wait(counted);
    spin_wait.reset();
    EXPECT_FALSE(spin_wait.pause());
    EXPECT_TRUE(spin_wait.pause());
    EXPECT_EQ(counted.pauses, 2);
    EXPECT_FALSE(spin_wait.oversubscribed());
}

TEST(SpinWait, asks_for_progress_all_along) {
    for (const int cores : {1, 2}) {
        SpinWait spin_wait(2, cores);
        const PauseCounts paused = pause_for(spin_wait, milliseconds(200));
        EXPECT_GE(paused.progress, (paused.pauses - 64) / 64) << cores << " cores for 2 ranks";
        EXPECT_GE(paused.progress, 1);
    }
}

TEST(SpinWait, does_not_ask_for_progress_each_time_it_spins) {
    SpinWait spin_wait(1, 1);
    spin_wait.reset();
    int progress = 0;
    for (int i = 0; i < 200; ++i) progress += spin_wait.pause() ? 1 : 0;
    EXPECT_GE(progress, 1);
    EXPECT_LE(progress, 10);
}

TEST(SpinWait, knows_that_ranks_share_cores_when_they_outnumber_them) {
    EXPECT_TRUE(SpinWait(16, 2).oversubscribed());
    EXPECT_FALSE(SpinWait(2, 2).oversubscribed());
}

TEST(SpinWait, takes_sixteen_processes_on_few_cores_through_two_thousand_barriers) {
    const int members = 16;
    const int rounds = 2000;
    const auto segment = test::make_segment(members);
    const auto begin = Clock::now();
    test::run_processes(members, [&](int me) {
        const auto node = test::join(segment, me);
        ASSERT_TRUE(node);
        // It isn't told that the ranks outnumber the cores.
        SpinWait spin_wait(members, members);
        for (std::int64_t round = 0; round < rounds; ++round) {
            test::begin(*node, spin_wait);
            node->expose_inline(0, &round, sizeof round);
            for (int peer = 0; peer < members; ++peer) {
                const Exposure& exposure = test::wait_for(*node, spin_wait, peer, 0);
                ASSERT_EQ(std::memcmp(node->direct(peer, exposure), &round, sizeof round), 0);
            }
            node->end();
        }
    });
    const double microseconds = duration<double, std::micro>(Clock::now() - begin).count() / rounds;
    RecordProperty("microseconds_per_round", std::to_string(microseconds));
    std::printf("%.1f us a round\n", microseconds);
}

}  // namespace
}  // namespace palmette::node
