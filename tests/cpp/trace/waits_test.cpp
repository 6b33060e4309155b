#include "palmette/trace/waits.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "planted.hpp"

namespace palmette::trace {
namespace {

using testing::DoubleNear;

std::pair<double, double> pair(double a, double b) { return {a, b}; }

TEST(Waits, at_a_barrier_are_until_the_last_one_comes) {
    PlantedTrace job(3);
    job.collective(0, "MPI_Barrier", 1, 10, 52);
    job.collective(1, "MPI_Barrier", 1, 30, 51);
    job.collective(2, "MPI_Barrier", 1, 50, 54);
    EXPECT_EQ(job.of(0, "MPI_Barrier"), pair(40, 1));
    EXPECT_EQ(job.of(1, "MPI_Barrier"), pair(20, 0));
    EXPECT_EQ(job.of(2, "MPI_Barrier"), pair(0, 3));
    const Waits waits = find_waits(job.trace());
    ASSERT_EQ(waits.causes.size(), 1U);
    EXPECT_EQ(waits.causes[0].process, 2);
    EXPECT_EQ(waits.causes[0].instances, 1U);
    EXPECT_EQ(waits.causes[0].waiters, 2U);
    EXPECT_THAT(waits.causes[0].waiting_s, DoubleNear(60e-6, 1e-12));
    EXPECT_THAT(waits.causes[0].late_s, DoubleNear(20e-6, 1e-12)) << "behind rank 1";
}

TEST(Waits, at_a_broadcast_are_for_its_root_alone) {
    PlantedTrace job(3);
    job.collective(0, "MPI_Bcast", 1, 10, 45, 1);
    job.collective(1, "MPI_Bcast", 1, 40, 42, 1);
    job.collective(2, "MPI_Bcast", 1, 90, 95, 1);
    EXPECT_EQ(job.of(0, "MPI_Bcast").first, 30);
    EXPECT_EQ(job.of(1, "MPI_Bcast").first, 0);
    EXPECT_EQ(job.of(2, "MPI_Bcast").first, 0) << "the root was there long ago";
}

TEST(Waits, at_a_reduction_to_one_are_the_roots) {
    PlantedTrace job(3);
    job.collective(0, "MPI_Reduce", 1, 10, 85, 0);
    job.collective(1, "MPI_Reduce", 1, 40, 41, 0);
    job.collective(2, "MPI_Reduce", 1, 80, 81, 0);
    EXPECT_EQ(job.of(0, "MPI_Reduce").first, 70);
    EXPECT_EQ(job.of(1, "MPI_Reduce").first, 0);
}

TEST(Waits, at_a_scan_are_for_lower_ranks) {
    PlantedTrace job(3);
    job.collective(0, "MPI_Scan", 1, 30, 31);
    job.collective(1, "MPI_Scan", 1, 10, 35);
    job.collective(2, "MPI_Scan", 1, 20, 40);
    EXPECT_EQ(job.of(0, "MPI_Scan").first, 0);
    EXPECT_EQ(job.of(1, "MPI_Scan").first, 20);
    EXPECT_EQ(job.of(2, "MPI_Scan").first, 10);
}

TEST(Waits, of_a_receive_are_until_its_send_begins) {
    PlantedTrace job(2);
    job.message(0, "MPI_Send", 1, 60, 61);
    job.message(1, "MPI_Recv", 0, 10, 65);
    job.message(1, "MPI_Recv", 0, 70, 72);
    job.message(0, "MPI_Send", 1, 66, 67);
    EXPECT_EQ(job.of(1, "MPI_Recv").first, 50) << "the second message was there";
    EXPECT_EQ(find_waits(job.trace()).causes[0].process, 0);
}

TEST(Waits, of_a_rendezvous_send_are_until_its_receive_begins) {
    PlantedTrace job(2);
    job.message(0, "MPI_Ssend", 1, 10, 90);
    job.message(1, "MPI_Recv", 0, 80, 91);
    EXPECT_EQ(job.of(0, "MPI_Ssend").first, 70);
    PlantedTrace eager(2);
    eager.message(0, "MPI_Send", 1, 10, 11);
    eager.message(1, "MPI_Recv", 0, 80, 81);
    EXPECT_EQ(eager.of(0, "MPI_Send").first, 0);
}

TEST(Waits, of_requests_belong_to_the_call_that_completes_them) {
    PlantedTrace job(2);
    job.message(0, "MPI_Irecv", 1, 10, 11);
    job.message(0, "MPI_Irecv", 1, 10, 85, true);
    job.call(0, "MPI_Wait", 40, 85);
    job.message(1, "MPI_Isend", 0, 80, 81);
    job.message(1, "MPI_Isend", 0, 80, 84, true);
    job.call(1, "MPI_Wait", 82, 84);
    EXPECT_EQ(job.of(0, "MPI_Wait").first, 40) << "it did something else until 40";
    EXPECT_EQ(job.of(0, "MPI_Irecv").first, 0);
    EXPECT_EQ(job.of(1, "MPI_Wait").first, 0);
    PlantedTrace barrier(2);
    for (int rank = 0; rank < 2; ++rank) {
        Event& request = barrier.call(rank, "MPI_Ibarrier", rank == 0 ? 5 : 60, 70, true);
        request.instance = 1;
        barrier.call(rank, "MPI_Waitall", rank == 0 ? 20 : 61, 70);
    }
    EXPECT_EQ(barrier.of(0, "MPI_Waitall").first, 40);
    EXPECT_EQ(barrier.of(1, "MPI_Waitall").first, 0);
}

TEST(Waits, of_a_waitall_are_those_of_its_latest_request) {
    PlantedTrace job(3);
    job.message(0, "MPI_Irecv", 1, 10, 70, true);
    job.message(0, "MPI_Irecv", 2, 11, 70, true);
    job.call(0, "MPI_Waitall", 20, 70);
    job.message(1, "MPI_Send", 0, 30, 31);
    job.message(2, "MPI_Send", 0, 65, 66);
    EXPECT_EQ(job.of(0, "MPI_Waitall").first, 45);
    EXPECT_EQ(find_waits(job.trace()).causes[0].process, 2);
}

TEST(Waits, of_tests_are_none) {
    PlantedTrace job(2);
    job.message(0, "MPI_Irecv", 1, 10, 70, true);
    job.call(0, "MPI_Test", 60, 70);
    job.message(1, "MPI_Send", 0, 65, 66);
    EXPECT_EQ(job.of(0, "MPI_Test").first, 0);
}

TEST(Waits, tell_how_much_of_a_collective_physics_needs) {
    PlantedTrace job(2);
    job.trace().plans.push_back({"allreduce", "ring", 4e-6, 1, {}});
    job.collective(0, "MPI_Allreduce", 1, 10, 60);
    job.collective(1, "MPI_Allreduce", 1, 40, 50);
    for (auto& process : job.trace().processes) process.threads[0].events[0].plan = 1;
    const Waits waits = find_waits(job.trace());
    ASSERT_EQ(waits.rows.size(), 2U);
    const Split& split = waits.rows[0].split;
    EXPECT_THAT(split.waiting_s, DoubleNear(30e-6, 1e-12));
    EXPECT_THAT(split.completion_s, DoubleNear(10e-6, 1e-12));
    EXPECT_THAT(split.bound_s, DoubleNear(4e-6, 1e-12));
    EXPECT_THAT(split.excess_s, DoubleNear(6e-6, 1e-12));
}

TEST(Waits, rate_the_job_as_pop_does) {
    PlantedTrace job(2);  // each runs for 1,000 us
    for (auto& process : job.trace().processes) {
        process.begin_ns = -5'000'000;
        process.end_ns = 9'000'000;
    }
    for (int rank = 0; rank < 2; ++rank) {
        job.call(rank, "MPI_Init", -4000, 0);
        job.call(rank, "MPI_Wait", 0, rank == 0 ? 200 : 600);
        job.call(rank, "MPI_Finalize", 1000, 8000);
    }
    const Efficiencies rates = find_waits(job.trace()).efficiencies;
    EXPECT_DOUBLE_EQ(rates.time_s, 1e-3);
    EXPECT_DOUBLE_EQ(rates.useful_s, 0.6e-3);
    EXPECT_DOUBLE_EQ(rates.load_balance, 0.75);
    EXPECT_DOUBLE_EQ(rates.communication, 0.8);
    EXPECT_DOUBLE_EQ(rates.parallel, 0.6);
}

TEST(Waits, of_what_a_ring_dropped_are_matched_from_the_end) {
    PlantedTrace job(2);
    job.trace().processes[0].dropped = job.trace().processes[0].threads[0].dropped = 1;
    job.call(0, "MPI_Comm_size", 5, 6);
    job.message(0, "MPI_Send", 1, 50, 51);  // the second of two
    job.call(1, "MPI_Wait", 1, 2);          // before the time that all rings hold
    job.message(1, "MPI_Recv", 0, 10, 12);
    job.message(1, "MPI_Recv", 0, 40, 55);
    EXPECT_EQ(job.of(1, "MPI_Recv").first, 10);
    EXPECT_EQ(find_waits(job.trace()).unmatched_messages, 1U);
    EXPECT_EQ(job.calls_of(1, "MPI_Wait"), 0U);
    EXPECT_DOUBLE_EQ(find_waits(job.trace()).efficiencies.time_s, 995e-6);
    PlantedTrace collective(2);
    collective.collective(0, "MPI_Barrier", 7, 10, 60);
    EXPECT_EQ(find_waits(collective.trace()).incomplete_collectives, 1U);
}

TEST(Waits, are_judged_from_when_on_every_threads_ring_holds_all) {
    PlantedTrace job(1);
    TracedProcess& process = job.trace().processes[0];
    job.call(0, "MPI_Comm_size", 1, 2);  // the main thread's, which drops nothing
    process.threads.emplace_back();
    process.threads[1].dropped = process.dropped = 90;
    std::swap(process.threads[0], process.threads[1]);
    job.call(0, "MPI_Barrier", 900, 1000);
    std::swap(process.threads[0], process.threads[1]);
    const Waits waits = find_waits(job.trace());
    EXPECT_DOUBLE_EQ(waits.efficiencies.time_s, 100e-6);
    EXPECT_DOUBLE_EQ(waits.efficiencies.useful_s, 0) << "what was dropped isn't computing";
}

TEST(Waits, of_sends_that_begin_together_are_matched_one_after_the_other) {
    PlantedTrace job(2);
    for (const std::uint64_t bytes : {std::uint64_t{100}, std::uint64_t{1} << 20}) {
        job.message(0, "MPI_Isend", 1, 10, 11).bytes = bytes;
        job.message(0, "MPI_Isend", 1, 10, 520, true).bytes = bytes;
    }
    job.call(0, "MPI_Waitall", 12, 520);
    job.message(1, "MPI_Recv", 0, 22, 30);
    job.message(1, "MPI_Recv", 0, 512, 520);
    EXPECT_EQ(job.of(0, "MPI_Waitall").first, 500) << "for the receive of the long one";
}

TEST(Waits, of_a_matched_receive_are_those_of_its_place_among_the_receives) {
    PlantedTrace job(2);
    job.message(0, "MPI_Send", 1, 10, 11).bytes = 1;
    job.message(0, "MPI_Send", 1, 50, 51).bytes = 2;
    // The probe finds the first message, and its receive comes after that of the second.
    job.call(1, "MPI_Mprobe", 0, 12);
    job.message(1, "MPI_Recv", 0, 20, 60).bytes = 2;
    job.message(1, "MPI_Mrecv", 0, 0, 71, true).bytes = 1;
    job.message(1, "MPI_Mrecv", 0, 70, 71).bytes = 1;
    EXPECT_EQ(job.of(1, "MPI_Recv").first, 30);
    EXPECT_EQ(job.of(1, "MPI_Mrecv").first, 0);
    EXPECT_EQ(find_waits(job.trace()).unmatched_messages, 0U);
}

TEST(Waits, of_partitioned_messages_are_for_partitioned_ones) {
    PlantedTrace job(2);
    job.message(0, "MPI_Send", 1, 10, 11).bytes = 1;
    job.message(0, "MPI_Psend_init", 1, 40, 45, true);
    job.call(0, "MPI_Wait", 41, 45);
    job.message(1, "MPI_Precv_init", 0, 0, 50, true);
    job.call(1, "MPI_Wait", 5, 50);
    job.message(1, "MPI_Recv", 0, 60, 61).bytes = 1;
    EXPECT_EQ(job.of(1, "MPI_Wait").first, 35);
    EXPECT_EQ(job.of(1, "MPI_Recv").first, 0);
}

TEST(Waits, arent_where_a_request_is_let_go) {
    PlantedTrace job(2);
    job.message(0, "MPI_Send", 1, 50, 51).bytes = 1;
    job.message(0, "MPI_Send", 1, 70, 71).bytes = 2;
    job.message(1, "MPI_Irecv", 0, 0, 20, true).bytes = 1;
    job.call(1, "MPI_Request_free", 10, 20);
    job.message(1, "MPI_Recv", 0, 30, 72).bytes = 2;
    EXPECT_EQ(job.of(1, "MPI_Request_free").first, 0);
    EXPECT_EQ(job.of(1, "MPI_Recv").first, 40);
    EXPECT_EQ(find_waits(job.trace()).clock_violations, 0U);
}

TEST(Waits, of_a_persistent_collective_are_those_of_its_start) {
    PlantedTrace job(2);
    for (int start = 0; start < 3; ++start)
        for (int rank = 0; rank < 2; ++rank) {
            const double at = 100.0 * start;
            Event& request = job.call(rank, "MPI_Barrier_init", at + (rank == 1 ? 50 : 0), at + 60, true);
            request.instance = 1;  // all starts share that of their init
            job.call(rank, "MPI_Wait", at + (rank == 1 ? 51 : 10), at + 60);
        }
    EXPECT_EQ(job.of(0, "MPI_Wait").first, 3 * 40);
    EXPECT_EQ(job.of(1, "MPI_Wait").first, 0);
    EXPECT_EQ(find_waits(job.trace()).incomplete_collectives, 0U);
}

TEST(Waits, conserve_time_whatever_happened) {
    std::mt19937 random(42);
    for (int round = 0; round < 200; ++round) {
        const int ranks = 2 + static_cast<int>(random() % 5);
        PlantedTrace job(ranks);
        for (std::uint64_t instance = 1; instance < 20; ++instance) {
            const char* const functions[] = {"MPI_Barrier", "MPI_Bcast", "MPI_Reduce", "MPI_Scan", "MPI_Allgather"};
            const char* const function = functions[random() % 5];
            const int root = static_cast<int>(random() % static_cast<unsigned>(ranks));
            for (int r = 0; r < ranks; ++r) {
                const double begin = static_cast<double>(instance) * 100 + static_cast<double>(random() % 90);
                job.collective(r, function, instance, begin, begin + static_cast<double>(random() % 120), root);
            }
        }
        for (int r = 0; r < ranks; ++r)
            for (const char* const function : {"MPI_Barrier", "MPI_Bcast", "MPI_Reduce", "MPI_Scan", "MPI_Allgather"})
                job.of(r, function);
        double waiting = 0;
        double caused = 0;
        const Waits waits = find_waits(job.trace());
        for (const Row& row : waits.rows) {
            EXPECT_GE(row.split.waiting_s, 0);
            EXPECT_GE(row.split.excess_s, -1e-15);
            EXPECT_GE(row.split.completion_s, 0);
            waiting += row.split.waiting_s;
        }
        for (const Cause& cause : waits.causes) caused += cause.waiting_s;
        EXPECT_THAT(caused, DoubleNear(waiting, 1e-9));
    }
}

TEST(Kinds, follow_from_names) {
    EXPECT_EQ(kind_of("MPI_Ialltoallw"), Kind::all_to_all);
    EXPECT_EQ(kind_of("MPI_Bcast_init_c"), Kind::one_to_all);
    EXPECT_EQ(kind_of("MPI_Ireduce"), Kind::all_to_one);
    EXPECT_EQ(kind_of("MPI_Ineighbor_allgather"), Kind::neighbours);
    EXPECT_EQ(kind_of("MPI_Issend"), Kind::send);
    EXPECT_EQ(kind_of("MPI_Recv_init"), Kind::receive);
    EXPECT_EQ(kind_of("MPI_Imrecv"), Kind::receive);
    EXPECT_EQ(kind_of("MPI_Waitsome"), Kind::wait);
    EXPECT_EQ(kind_of("MPI_Testall"), Kind::test);
    EXPECT_EQ(kind_of("MPI_Test_cancelled"), Kind::other);
    EXPECT_EQ(kind_of("MPI_Init"), Kind::init);
    EXPECT_EQ(kind_of("MPI_Comm_split"), Kind::other);
}

}  // namespace
}  // namespace palmette::trace
