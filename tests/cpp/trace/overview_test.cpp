#include "palmette/trace/overview.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "planted.hpp"

namespace palmette::trace {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::SizeIs;

/// The jobs of these tests last a millisecond: ten bins of 100 us.
OverviewOptions options() {
    OverviewOptions chosen;
    chosen.bins = 10;
    chosen.link_bins = 10;
    return chosen;
}

TEST(Overview, bins_have_the_shares_of_time_in_mpi_and_waiting) {
    PlantedTrace job(2);
    job.collective(0, "MPI_Barrier", 1, 100, 350);
    job.collective(1, "MPI_Barrier", 1, 200, 350);
    const Overview view = palmette::trace::view(job.trace(), options()).overview;
    ASSERT_EQ(view.rows, 2);
    EXPECT_THAT(std::vector(view.mpi.begin(), view.mpi.begin() + 5), ElementsAre(0, 255, 255, 128, 0));
    EXPECT_THAT(std::vector(view.waiting.begin(), view.waiting.begin() + 5), ElementsAre(0, 255, 0, 0, 0));
    EXPECT_THAT(std::vector(view.waiting.begin() + 10, view.waiting.end()), testing::Each(0));
    EXPECT_EQ(view.function[1], 0);
    EXPECT_EQ(view.function[0], no_function);
}

TEST(Overview, several_ranks_share_a_row_where_there_are_many) {
    PlantedTrace job(5);
    for (int rank = 0; rank < 5; ++rank) job.call(rank, "MPI_Wtime", 0, rank < 2 ? 100 : 50);
    OverviewOptions chosen = options();
    chosen.rows = 3;
    const Overview view = palmette::trace::view(job.trace(), chosen).overview;
    EXPECT_THAT(view.row_of, ElementsAre(0, 0, 1, 1, 2));
    EXPECT_THAT(view.in_row, ElementsAre(2, 2, 1));
    EXPECT_EQ(view.mpi[0], 255);
    EXPECT_EQ(view.mpi[10], 128);
    EXPECT_EQ(view.mpi[20], 128);
}

TEST(Overview, the_longest_calls_are_kept) {
    PlantedTrace job(1);
    for (int i = 0; i < 90; ++i) job.call(0, "MPI_Comm_rank", 10 * i, 10 * i + 1 + i % 9);
    OverviewOptions chosen = options();
    chosen.calls = 10;
    const Overview view = palmette::trace::view(job.trace(), chosen).overview;
    EXPECT_EQ(view.calls_in_all, 90U);
    ASSERT_THAT(view.calls, SizeIs(10));
    for (const DrawnCall& call : view.calls) EXPECT_EQ(call.length_ns, 9000);
    EXPECT_TRUE(std::is_sorted(view.calls.begin(), view.calls.end(),
                               [](const DrawnCall& a, const DrawnCall& b) { return a.begin_ns < b.begin_ns; }));
}

TEST(Overview, messages_are_matched) {
    PlantedTrace job(3);
    job.message(0, "MPI_Send", 2, 100, 110).bytes = 1000;
    job.message(0, "MPI_Send", 2, 300, 310).bytes = 500;
    job.message(2, "MPI_Recv", 0, 50, 120).bytes = 4096;
    job.message(2, "MPI_Recv", 0, 320, 330).bytes = 4096;
    const Overview view = palmette::trace::view(job.trace(), options()).overview;
    ASSERT_THAT(view.messages, SizeIs(2));
    EXPECT_EQ(view.messages[0].sent_ns, 100'000);
    EXPECT_EQ(view.messages[0].received_ns, 120'000);
    EXPECT_EQ(view.messages[0].bytes, 1000) << "what was sent, not the size of the buffer";
    EXPECT_THAT(view.messages[0].waiting_s, DoubleNear(50e-6, 1e-12));
}

/// Four ranks on two nodes: ranks 0 and 1, 2 and 3.
OverviewOptions two_nodes() {
    OverviewOptions chosen = options();
    chosen.groups = {{0, 0, 1, 1}};
    return chosen;
}

TEST(Overview, messages_load_the_links_that_they_cross_when_they_are_sent) {
    PlantedTrace job(4);
    job.message(0, "MPI_Send", 1, 100, 110).bytes = 7;
    job.message(1, "MPI_Isend", 3, 210, 212).bytes = 1000;
    job.message(1, "MPI_Isend", 3, 210, 220, true).bytes = 1000;
    job.call(1, "MPI_Wait", 215, 220);
    const Overview view = palmette::trace::view(job.trace(), two_nodes()).overview;
    ASSERT_THAT(view.link_out, SizeIs(20));
    EXPECT_EQ(view.link_out[2], 1000) << "out of the first node, in the third bin";
    EXPECT_EQ(view.link_in[12], 1000);
    EXPECT_EQ(std::accumulate(view.link_out.begin(), view.link_out.end(), 0.0), 1000);
    EXPECT_EQ(std::accumulate(view.link_in.begin(), view.link_in.end(), 0.0), 1000);
}

TEST(Overview, plans_load_links_as_long_as_their_calls_last) {
    PlantedTrace job(4);
    TracedPlan plan{"gather", "linear", 5e-6, 1, {{0, 1, 100}, {1, 2, 20}}};
    job.trace().plans.push_back(plan);
    for (int rank = 0; rank < 4; ++rank) {
        Event& call = job.collective(rank, "MPI_Gather", 1, 100, 300, 0);
        call.plan = rank == 2 ? 1 : 0;
        if (rank != 2) call.bytes = 100;
    }
    const OverviewWithWaits found = view(job.trace(), two_nodes());
    EXPECT_THAT(found.overview.link_out[10 + 1], DoubleNear(60, 1e-6)) << "half of the call lies in this bin";
    EXPECT_THAT(found.overview.link_out[10 + 2], DoubleNear(60, 1e-6));
    EXPECT_THAT(found.overview.link_in[1], DoubleNear(60, 1e-6));
}

TEST(Overview, collectives_of_the_mpi_are_counted_once_by_what_the_root_says) {
    PlantedTrace job(2);
    for (std::uint64_t instance = 1; instance <= 3; ++instance)
        for (int rank = 0; rank < 2; ++rank) {
            const double at = 100.0 * static_cast<double>(instance);
            job.collective(rank, "MPI_Bcast", instance, at, at + 10, 1).bytes = rank == 1 ? 64 : 0;
        }
    const Overview view = palmette::trace::view(job.trace(), options()).overview;
    ASSERT_THAT(view.unserved, SizeIs(1));
    EXPECT_EQ(view.unserved[0].root, 1);
    EXPECT_EQ(view.unserved[0].bytes, 64U);
    EXPECT_THAT(view.unserved[0].by_time, ElementsAre(0, 1, 1, 1, 0, 0, 0, 0, 0, 0));
}

TEST(Overview, a_bound_is_asked_for_once_and_counts_for_all_ranks) {
    PlantedTrace job(2);
    for (std::uint64_t instance = 1; instance <= 2; ++instance)
        for (int rank = 0; rank < 2; ++rank) {
            const double at = 100.0 * static_cast<double>(instance);
            job.collective(rank, "MPI_Allreduce", instance, at, at + 50).bytes = 8;
        }
    int asked = 0;
    const OverviewWithWaits found = view(
        job.trace(), options(), [&](std::uint32_t, std::uint32_t communicator, std::int32_t root, std::uint64_t bytes) {
            ++asked;
            EXPECT_EQ(communicator, 1U);
            EXPECT_EQ(root, -1);
            EXPECT_EQ(bytes, 8U);
            return 20e-6;
        });
    EXPECT_EQ(asked, 1);
    Split sum;
    for (const Row& row : found.waits.rows) sum.add(row.split);
    EXPECT_THAT(sum.bound_s, DoubleNear(4 * 20e-6, 1e-12));
    EXPECT_THAT(sum.excess_s, DoubleNear(4 * 30e-6, 1e-12));
}

TEST(Overview, the_longest_single_wait_of_a_cause_is_told) {
    PlantedTrace job(2);
    job.collective(0, "MPI_Barrier", 1, 100, 125);
    job.collective(1, "MPI_Barrier", 1, 120, 125);
    job.collective(0, "MPI_Barrier", 2, 200, 295);
    job.collective(1, "MPI_Barrier", 2, 290, 295);
    const Waits waits = find_waits(job.trace());
    ASSERT_THAT(waits.causes, SizeIs(1));
    EXPECT_EQ(waits.causes[0].worst_begin_ns, 200'000);
    EXPECT_EQ(waits.causes[0].worst_end_ns, 290'000);
}

}  // namespace
}  // namespace palmette::trace
