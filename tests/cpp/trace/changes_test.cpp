// Replays with other prices: what another plan or placement would give.
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "palmette/trace/replay.hpp"
#include "palmette/trace/sent.hpp"
#include "planted.hpp"

namespace palmette::trace::changes_tests {
namespace {

double us(double seconds) { return std::round(seconds * 1e9) / 1e3; }

/// Two ranks that compute 10, are in an allreduce for 40, and end; rank 1 comes 5 later.
PlantedTrace summing() {
    PlantedTrace job(2);
    for (int rank = 0; rank < 2; ++rank) job.call(rank, "MPI_Init", 0, 0);
    job.collective(0, "MPI_Allreduce", 1, 10, 55);
    job.collective(1, "MPI_Allreduce", 1, 15, 55);
    for (int rank = 0; rank < 2; ++rank) job.call(rank, "MPI_Finalize", 60, 61);
    return job;
}

Changes priced(double seconds, double was_s, double scale = 1, bool by_ratio = false) {
    Changes changes;
    changes.collective = [=](const CollectiveKind&) -> Price { return {seconds, was_s, by_ratio}; };
    changes.scale = scale;
    return changes;
}

TEST(Changes, of_a_call_that_the_model_knows_add_what_it_differs_by) {
    PlantedTrace job = summing();
    // By the model it took 30 of the measured 40: the other 10 stay.
    EXPECT_EQ(us(replay(job.trace(), priced(20e-6, 30e-6)).time_s), 50);
    EXPECT_EQ(us(replay(job.trace(), priced(50e-6, 30e-6)).time_s), 80);
    EXPECT_EQ(us(replay(job.trace(), priced(50e-6, 30e-6, 1.25)).time_s), 85) << "of the difference";
    EXPECT_EQ(us(replay(job.trace(), priced(15e-6, 30e-6, 1, true)).time_s), 40) << "of the 40, half";
    // By the model it took 80, twice as long as measured: then all in proportion.
    EXPECT_EQ(us(replay(job.trace(), priced(40e-6, 80e-6)).time_s), 40);
}

TEST(Changes, of_a_call_that_the_model_does_not_know_are_its_new_time) {
    PlantedTrace job = summing();
    EXPECT_EQ(us(replay(job.trace(), priced(25e-6, 0)).time_s), 45);
    EXPECT_EQ(us(replay(job.trace(), priced(25e-6, 0, 1.25)).time_s), 51.25);
    EXPECT_EQ(us(replay(job.trace(), priced(-1, 0)).time_s), 60) << "as measured";
    EXPECT_EQ(us(replay(job.trace(), Changes{}).time_s), 60);
}

TEST(Changes, are_asked_for_once_for_each_kind_of_call) {
    PlantedTrace job(2);
    for (int rank = 0; rank < 2; ++rank)
        for (int i = 0; i < 6; ++i)
            job.collective(rank, "MPI_Bcast", static_cast<std::uint64_t>(i + 1), 10 * i, 10 * i + 5, i % 2).bytes =
                i < 4 ? 100 : 200;
    std::vector<CollectiveKind> asked;
    Changes changes;
    changes.collective = [&](const CollectiveKind& kind) -> Price {
        asked.push_back(kind);
        return {};
    };
    replay(job.trace(), changes);
    EXPECT_EQ(asked.size(), 4U) << "two roots with two sizes each";
}

TEST(Changes, tell_time_in_calls_with_waiting) {
    PlantedTrace job = summing();
    const Replay found = replay(job.trace(), priced(20e-6, 30e-6));
    double before = 0, after = 0;
    for (const InCalls& one : found.in_calls)
        if (job.trace().functions[one.function] == "MPI_Allreduce") {
            before += one.measured_s;
            after += one.replayed_s;
        }
    EXPECT_EQ(us(before), 85);
    EXPECT_EQ(us(after), 65) << "rank 0 still waits for rank 1";
}

/// Rank 0 sends 1,000,000 bytes to rank 1, which asks for them `late` after they were sent.
PlantedTrace sending(double late) {
    PlantedTrace job(2);
    for (int rank = 0; rank < 2; ++rank) job.call(rank, "MPI_Init", 0, 0);
    job.message(0, "MPI_Isend", 1, 10, 11).bytes = 1'000'000;
    job.message(0, "MPI_Isend", 1, 10, 60, true).bytes = 1'000'000;
    job.call(0, "MPI_Wait", 11, 60);
    job.message(1, "MPI_Recv", 0, 10 + late, 60).bytes = 1'000'000;
    job.call(0, "MPI_Finalize", 60, 61);
    job.call(1, "MPI_Finalize", 60, 61);
    return job;
}

double with_message(PlantedTrace& job, double was_us, double now_us) {
    Changes changes;
    changes.messages[Changes::pair(0, 1)] = {now_us * 1e-6, was_us * 1e-6};
    return us(replay(job.trace(), changes).ends_s[1]);
}

TEST(Changes, of_messages_are_those_of_their_pair_of_ranks) {
    PlantedTrace job = sending(0);
    EXPECT_EQ(with_message(job, 40, 20), 40);
    EXPECT_EQ(with_message(job, 40, 70), 90);
    EXPECT_EQ(with_message(job, 100, 50), 35) << "in proportion";
    Changes other;
    other.messages[Changes::pair(1, 0)] = {1e-6, 40e-6};
    EXPECT_EQ(us(replay(job.trace(), other).time_s), 60) << "of the other direction";
}

TEST(Changes, of_a_message_that_was_under_way_count_from_its_send_on) {
    PlantedTrace job = sending(45);  // the receive takes 5 of the message's 50
    EXPECT_EQ(with_message(job, 50, 20), 60) << "it was there";
    EXPECT_EQ(with_message(job, 50, 80), 90);
}

TEST(PairTraffic, is_what_the_program_itself_sent) {
    PlantedTrace job = sending(0);
    job.message(1, "MPI_Send", 0, 70, 71).bytes = 5;
    job.message(1, "MPI_Send", 0, 72, 73).bytes = 6;
    const std::vector<PairTraffic> found = sent(job.trace());
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].messages, 1U);
    EXPECT_EQ(found[0].bytes, 1e6);
    EXPECT_EQ(found[1].from, 1);
    EXPECT_EQ(found[1].messages, 2U);
    EXPECT_EQ(found[1].bytes, 11);
}

TEST(LinkUse, is_of_messages_and_plans_that_cross_a_groups_link) {
    // Ranks 0 and 1 are group 0, 2 and 3 group 1.
    PlantedTrace job(4);
    job.message(0, "MPI_Send", 2, 10, 20).bytes = 100;  // crosses
    job.message(0, "MPI_Send", 1, 20, 30).bytes = 7;    // doesn't
    job.message(3, "MPI_Send", 1, 10, 20).bytes = 30;
    job.trace().plans.push_back({"MPI_Bcast", "linear", 0, 1, {{2, 1, 500}, {1, 1, 500}}});
    for (int rank = 0; rank < 4; ++rank) {
        Event& served = job.collective(rank, "MPI_Bcast", 1, 40, 50, 0);
        if (rank == 0) served.plan = 1;
        job.collective(rank, "MPI_Allreduce", 2, 60, 70).bytes = 64;
    }
    const LinkUse found = link_use(job.trace(), {0, 0, 1, 1}, 0);
    const auto name = [&](std::uint32_t function) { return job.trace().functions[function]; };
    ASSERT_EQ(found.users.size(), 2U);
    for (const LinkUser& one : found.users) {
        EXPECT_EQ(one.bytes_out, name(one.function) == "MPI_Send" ? 100 : 500);
        EXPECT_EQ(one.bytes_in, name(one.function) == "MPI_Send" ? 30 : 0);
        EXPECT_EQ(one.path, 1U);
    }
    ASSERT_EQ(found.unserved.size(), 1U);
    EXPECT_EQ(name(found.unserved[0].function), "MPI_Allreduce");
    EXPECT_EQ(found.unserved[0].bytes, 64U);
    EXPECT_EQ(found.unserved[0].calls, 1U);
}

}  // namespace
}  // namespace palmette::trace::changes_tests
