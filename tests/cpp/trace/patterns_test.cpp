#include "palmette/trace/patterns.hpp"

#include "planted.hpp"

namespace palmette::trace {
namespace {

std::vector<Chain> chains_of(PlantedTrace& job) {
    WaitGraph awaited;
    replay(job.trace(), Costs::measured, {}, &awaited);
    return chains(job.trace(), awaited);
}

/// Each of four ranks computes for 100 us after it has got the message of the one before; then all meet.
PlantedTrace sweep() {
    PlantedTrace job(4);
    for (int rank = 0; rank < 4; ++rank) {
        job.call(rank, "MPI_Init", 0, 1);
        const double begin_us = 100.0 * rank;
        if (rank > 0) job.message(rank, "MPI_Recv", rank - 1, 10, begin_us + 11).bytes = 8;
        if (rank < 3) job.message(rank, "MPI_Send", rank + 1, begin_us + 110, begin_us + 111).bytes = 8;
        job.collective(rank, "MPI_Barrier", 1, begin_us + 120, 440);
        job.call(rank, "MPI_Finalize", 450, 460);
    }
    return job;
}

TEST(Chains, go_through_all_that_wait_for_one_that_waits) {
    PlantedTrace job = sweep();
    const auto found = chains_of(job);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(job.trace().functions[found[0].function], "MPI_Recv");
    EXPECT_EQ(found[0].instances, 1U);
    EXPECT_EQ(found[0].waits, 3U);
    EXPECT_EQ(found[0].processes, (std::vector<std::int32_t>{0, 1, 2, 3}));
    // Receives: 100, 200, 300 us; the barrier: 300, 200, for the last one has its message when rank 2 comes.
    EXPECT_NEAR(found[0].waiting_s, 1100e-6, 20e-6);
    EXPECT_NEAR(found[0].in_between_s, 200e-6, 20e-6);
}

TEST(Chains, are_none_where_ranks_have_waited_before_the_others_came) {
    PlantedTrace job(4);
    for (int rank = 0; rank < 4; ++rank) {
        job.call(rank, "MPI_Init", 0, 1);
        // Each begins to receive when the one before has got its own message.
        if (rank > 0) job.message(rank, "MPI_Recv", rank - 1, 100.0 * rank - 20, 100.0 * rank + 11);
        if (rank < 3) job.message(rank, "MPI_Send", rank + 1, 100.0 * rank + 100, 100.0 * rank + 101);
        job.call(rank, "MPI_Finalize", 450, 460);
    }
    EXPECT_TRUE(chains_of(job).empty());
}

TEST(Chains, of_two_ranks_are_late_senders) {
    PlantedTrace job(2);
    for (int rank = 0; rank < 2; ++rank) {
        job.call(rank, "MPI_Init", 0, 1);
        for (int step = 0; step < 4; ++step) {
            const double at_us = 100.0 * step + 10;
            if (step % 2 == rank)
                job.message(rank, "MPI_Send", 1 - rank, at_us + 90, at_us + 91);
            else
                job.message(rank, "MPI_Recv", 1 - rank, at_us, at_us + 92);
        }
        job.call(rank, "MPI_Finalize", 450, 460);
    }
    EXPECT_TRUE(chains_of(job).empty());
}

TEST(MessageRuns, are_small_messages_with_little_between_them) {
    PlantedTrace job(2);
    job.call(0, "MPI_Init", 0, 1);
    double at_us = 10;
    const auto send = [&](int count, std::uint64_t bytes) {
        for (int i = 0; i < count; ++i, at_us += 2) job.message(0, "MPI_Send", 1, at_us, at_us + 1.5).bytes = bytes;
    };
    send(100, 8);
    at_us += 500;  // computes
    send(20, 8);
    job.collective(0, "MPI_Barrier", 1, at_us, at_us + 1);
    at_us += 2;
    send(15, 8);  // too few
    job.collective(0, "MPI_Barrier", 2, at_us, at_us + 1);
    at_us += 2;
    send(50, 100'000);  // not small
    const auto found = message_runs(job.trace());
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].runs, 2U);
    EXPECT_EQ(found[0].messages, 120U);
    EXPECT_EQ(found[0].bytes, 960U);
    EXPECT_EQ(found[0].longest, 100U);
    EXPECT_EQ(found[0].longest_bytes, 800U);
    EXPECT_EQ(found[0].from, 0);
    EXPECT_EQ(found[0].to, 1);
    EXPECT_NEAR(found[0].seconds, 120 * 1.5e-6, 1e-9);
}

TEST(MessageRuns, count_time_once_where_several_ranks_are_sent_to_by_turns) {
    PlantedTrace job(3);
    job.call(0, "MPI_Init", 0, 1);
    for (int i = 0; i < 64; ++i) job.message(0, "MPI_Send", 1 + i % 2, 10 + 2 * i, 11 + 2 * i).bytes = 8;
    const auto found = message_runs(job.trace());
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].runs, 2U);
    EXPECT_NEAR(found[0].seconds, 64e-6, 1e-9);
}

}  // namespace
}  // namespace palmette::trace
