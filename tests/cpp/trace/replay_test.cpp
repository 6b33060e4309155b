#include "palmette/trace/replay.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "palmette/trace/causes.hpp"
#include "planted.hpp"

namespace palmette::trace::replay_tests {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

/// Seconds in microseconds.
double us(double seconds) { return std::round(seconds * 1e9) / 1e3; }

/// A job from 0 to `end_us`, with MPI_Init that ends then.
class Job : public PlantedTrace {
  public:
    explicit Job(int ranks) : PlantedTrace(ranks), ranks_(ranks) {
        for (int rank = 0; rank < ranks; ++rank) call(rank, "MPI_Init", 0, 0);
    }
    void end(std::vector<double> at_us) {
        for (int rank = 0; rank < ranks_; ++rank)
            call(rank, "MPI_Finalize", at_us[static_cast<std::size_t>(rank)],
                 at_us[static_cast<std::size_t>(rank)] + 5);
    }
    double time_us(Costs costs, const BoundOf& bound_of = {}) {
        last = replay(trace(), costs, bound_of);
        return us(last.time_s);
    }
    Replay last;

  private:
    int ranks_;
};

TEST(Replay, of_an_ideal_network_leaves_computation_and_dependencies) {
    Job job(2);
    // Rank 0 computes 10, rank 1 30; the barrier takes 5 more.
    job.collective(0, "MPI_Barrier", 1, 10, 35);
    job.collective(1, "MPI_Barrier", 1, 30, 35);
    // Then rank 0 computes 40, rank 1 10, and both meet again.
    job.collective(0, "MPI_Allreduce", 2, 75, 80);
    job.collective(1, "MPI_Allreduce", 2, 45, 80);
    job.end({81, 80});
    EXPECT_EQ(job.time_us(Costs::ideal), 30 + 40 + 1);
    EXPECT_EQ(job.time_us(Costs::measured), 81);
    EXPECT_EQ(us(job.last.measured_s), 81);
    EXPECT_EQ(job.last.forced, 0U);
}

TEST(Replay, keeps_chains_that_subtracting_transfers_from_each_rank_would_lose) {
    // A message goes through three ranks; each computes 10 before it sends on, each transfer takes 20.
    Job job(3);
    job.message(0, "MPI_Send", 1, 10, 11);
    job.message(1, "MPI_Recv", 0, 0, 30);
    job.message(1, "MPI_Send", 2, 40, 41);
    job.message(2, "MPI_Recv", 1, 0, 60);
    job.end({11, 41, 70});
    EXPECT_EQ(job.time_us(Costs::ideal), 30);
    EXPECT_EQ(job.time_us(Costs::measured), 70);
    EXPECT_THAT(job.last.ends_s,
                ElementsAre(DoubleNear(11e-6, 1e-12), DoubleNear(41e-6, 1e-12), DoubleNear(70e-6, 1e-12)));
}

TEST(Replay, with_bounds_adds_what_physics_needs_where_data_must_come) {
    Job job(3);
    for (int rank = 0; rank < 3; ++rank) job.collective(rank, "MPI_Bcast", 1, 10, rank == 1 ? 12 : 50, 1);
    job.end({50, 12, 50});
    const BoundOf bound = [](std::uint32_t, std::uint32_t, std::int32_t, std::uint64_t) { return 15e-6; };
    EXPECT_EQ(job.time_us(Costs::ideal), 10);
    EXPECT_EQ(job.time_us(Costs::bound, bound), 25);
    EXPECT_THAT(job.last.ends_s,
                ElementsAre(DoubleNear(25e-6, 1e-12), DoubleNear(10e-6, 1e-12), DoubleNear(25e-6, 1e-12)));
}

TEST(Replay, tells_plans_of_served_calls_their_execution_and_other_calls_apart) {
    // Both compute 10; a served collective takes 40, of which the limit is 15 and its plan's prediction 25; then one of
    // the MPI itself takes 30, of which the limit is 15.
    Job job(2);
    job.trace().plans.push_back({"MPI_Allreduce", "ring", 15e-6, 1, {}});
    for (int rank = 0; rank < 2; ++rank) job.collective(rank, "MPI_Allreduce", 1, 10, 50).plan = 1;
    for (int rank = 0; rank < 2; ++rank) job.collective(rank, "MPI_Allgather", 2, 50, 80);
    job.end({80, 80});
    const BoundOf bound = [](std::uint32_t, std::uint32_t, std::int32_t, std::uint64_t) { return 15e-6; };
    double predicted_s = 25e-6;
    const PredictedOf predicted = [&](const CollectiveKind& kind) {
        EXPECT_EQ(kind.plan, 1U);
        return predicted_s;
    };
    EXPECT_EQ(job.time_us(Costs::bound, bound), 10 + 15 + 15);
    EXPECT_EQ(us(replay(job.trace(), Costs::planned, bound, nullptr, predicted).time_s), 10 + 25 + 15);
    EXPECT_EQ(job.time_us(Costs::served, bound), 10 + 40 + 15);
    // A plan that isn't known took what it took; one that is expected to take less than the limit takes the limit.
    predicted_s = 0;
    EXPECT_EQ(us(replay(job.trace(), Costs::planned, bound, nullptr, predicted).time_s), 10 + 40 + 15);
    predicted_s = 1e-6;
    EXPECT_EQ(us(replay(job.trace(), Costs::planned, bound, nullptr, predicted).time_s), 10 + 15 + 15);
    EXPECT_EQ(job.time_us(Costs::ideal), 10);
}

TEST(Replay, of_scans_waits_for_lower_ranks_alone) {
    Job job(3);
    job.collective(0, "MPI_Scan", 1, 30, 31);
    job.collective(1, "MPI_Scan", 1, 10, 35);
    job.collective(2, "MPI_Scan", 1, 50, 55);
    job.end({31, 35, 55});
    EXPECT_EQ(job.time_us(Costs::ideal), 50);
    EXPECT_THAT(job.last.ends_s,
                ElementsAre(DoubleNear(30e-6, 1e-12), DoubleNear(30e-6, 1e-12), DoubleNear(50e-6, 1e-12)));
}

TEST(Replay, of_requests_waits_in_the_call_that_completes_them) {
    Job job(2);
    job.message(0, "MPI_Irecv", 1, 10, 11);
    job.message(0, "MPI_Irecv", 1, 10, 85, true);
    job.call(0, "MPI_Wait", 40, 85);
    job.message(1, "MPI_Isend", 0, 80, 81);
    job.message(1, "MPI_Isend", 0, 80, 84, true);
    job.call(1, "MPI_Wait", 82, 84);
    job.end({86, 84});
    // Rank 1 computes 80 and posts; rank 0 then 1.
    EXPECT_EQ(job.time_us(Costs::ideal), 81);
    EXPECT_EQ(job.time_us(Costs::measured), 86);
    Job barrier(2);
    for (int rank = 0; rank < 2; ++rank) {
        const double begin = rank == 0 ? 5 : 60;
        Event& call = barrier.call(rank, "MPI_Ibarrier", begin, begin + 1);
        call.instance = 1;
        Event& request = barrier.call(rank, "MPI_Ibarrier", begin, 70, true);
        request.instance = 1;
        barrier.call(rank, "MPI_Waitall", rank == 0 ? 20 : 61, 70);
    }
    barrier.end({70, 70});
    EXPECT_EQ(barrier.time_us(Costs::ideal), 60);
    EXPECT_EQ(barrier.time_us(Costs::measured), 70);
}

TEST(Replay, of_a_nonblocking_broadcast_waits_for_its_root_alone) {
    Job job(3);
    for (int rank = 0; rank < 3; ++rank) {
        const double begin = rank == 1 ? 40 : 10.0 * rank;
        Event& call = job.call(rank, "MPI_Ibcast", begin, begin + 1);
        call.instance = 1;
        call.peer = 1;
        Event& request = job.call(rank, "MPI_Ibcast", begin, 45, true);
        request.instance = 1;
        request.peer = 1;
        job.call(rank, "MPI_Wait", begin + 1, 45);
    }
    job.end({45, 45, 45});
    EXPECT_EQ(job.time_us(Costs::measured), 45);
    EXPECT_EQ(job.time_us(Costs::ideal), 40);
    EXPECT_EQ(job.last.forced, 0U);
}

TEST(Replay, of_a_receive_from_anybody_is_found_by_its_request) {
    Job job(3);
    job.message(0, "MPI_Irecv", -2, 10, 11);
    job.message(0, "MPI_Irecv", 2, 10, 50, true);
    job.call(0, "MPI_Wait", 12, 50);
    job.message(2, "MPI_Ssend", 0, 40, 45);
    job.end({50, 0, 45});
    EXPECT_EQ(job.time_us(Costs::ideal), 40);
    EXPECT_EQ(job.time_us(Costs::measured), 50);
}

TEST(Replay, of_what_can_not_be_told_keeps_the_measured_time_and_says_so) {
    Job job(2);
    job.call(0, "MPI_Comm_split", 10, 30);
    job.call(1, "MPI_Comm_split", 10, 30);
    job.message(0, "MPI_Recv", 1, 40, 60);  // whose send isn't recorded
    job.end({60, 30});
    EXPECT_EQ(job.time_us(Costs::measured), 60);
    EXPECT_EQ(job.last.without_counterpart, 1U);
    ASSERT_EQ(job.last.unmodelled.size(), 1U);
    EXPECT_EQ(job.last.unmodelled[0].calls, 2U);
    EXPECT_EQ(us(job.last.unmodelled[0].seconds), 40);
}

TEST(Replay, goes_on_where_clocks_disagree_so_much_that_all_would_wait) {
    // Two that wait for what the other one begins afterwards.
    Job job(2);
    job.message(0, "MPI_Recv", 1, 10, 20);
    job.message(0, "MPI_Send", 1, 30, 31);
    job.message(1, "MPI_Recv", 0, 10, 20);
    job.message(1, "MPI_Send", 0, 30, 31);
    job.end({40, 40});
    EXPECT_EQ(job.time_us(Costs::ideal) > 0, true);
    EXPECT_GE(job.last.forced, 1U);
}

TEST(CriticalPath, is_that_which_determined_the_end) {
    Job job(2);
    job.collective(0, "MPI_Barrier", 1, 10, 35);
    job.collective(1, "MPI_Barrier", 1, 30, 35);
    job.collective(0, "MPI_Allreduce", 2, 75, 80);
    job.collective(1, "MPI_Allreduce", 2, 45, 80);
    job.end({80, 90});
    WaitGraph awaited;
    replay(job.trace(), Costs::measured, {}, &awaited);
    const CriticalPath found = critical_path(job.trace(), awaited);
    std::map<std::pair<std::string, int>, std::pair<double, double>> rows;
    double sum = 0;
    for (const OnPath& row : found.rows) {
        rows[{job.trace().functions[row.function], row.process}] = {us(row.before_s), us(row.in_call_s)};
        sum += row.before_s + row.in_call_s;
    }
    EXPECT_EQ(us(sum), 90);
    // Rank 1 to the barrier, rank 0 to the reduction, rank 1 to the end.
    EXPECT_EQ((rows[{"MPI_Barrier", 1}].first), 30);
    EXPECT_EQ((rows[{"MPI_Barrier", 0}].second), 5) << "until all had it";
    EXPECT_EQ((rows[{"MPI_Allreduce", 0}].first), 40);
    EXPECT_EQ((rows[{"MPI_Allreduce", 1}].second), 5);
    ASSERT_EQ(found.stretches.size(), 3U);
    EXPECT_EQ(found.stretches[0].process, 1);
    EXPECT_EQ(found.stretches[1].process, 0);
    EXPECT_EQ(found.stretches[2].process, 1);
    EXPECT_EQ(found.stretches[1].begin_ns, 30'000);
    EXPECT_EQ(found.stretches[1].end_ns, 75'000);
}

struct CostlyCall {
    std::string function;
    bool in_call;
    int process;
    double short_us, long_us;
    bool operator==(const CostlyCall&) const = default;
};
std::ostream& operator<<(std::ostream& out, const CostlyCall& one) {
    return out << one.function << (one.in_call ? " itself" : ", before it") << " of " << one.process << ": "
               << one.short_us << " and " << one.long_us;
}

/// Delays of any cost; checks that costs are conserved.
std::vector<CostlyCall> delays_of(Job& job) {
    WaitGraph awaited;
    replay(job.trace(), Costs::measured, {}, &awaited);
    const Delays delays = delay_costs(job.trace(), awaited);
    std::vector<CostlyCall> out;
    double sum = delays.unexplained_s;
    for (const Delay& row : delays.rows) {
        sum += row.short_term_s + row.long_term_s;
        out.push_back(
            {job.trace().functions[row.function], row.in_call, row.process, us(row.short_term_s), us(row.long_term_s)});
    }
    EXPECT_NEAR(sum, delays.waiting_s, 1e-9);
    return out;
}

TEST(DelayCosts, are_those_of_the_rank_that_computes_longer) {
    Job job(3);
    job.collective(0, "MPI_Barrier", 1, 10, 52);
    job.collective(1, "MPI_Barrier", 1, 10, 52);
    job.collective(2, "MPI_Barrier", 1, 50, 52);
    job.end({60, 60, 60});
    EXPECT_THAT(delays_of(job), ElementsAre(CostlyCall{"MPI_Barrier", false, 2, 80, 0}));
}

TEST(DelayCosts, of_waiting_that_made_others_wait_go_to_the_root) {
    // Rank 0 comes late, so that rank 1 waits, and rank 2 for rank 1.
    Job job(3);
    job.message(0, "MPI_Send", 1, 60, 61);
    job.message(1, "MPI_Recv", 0, 10, 62);
    job.message(1, "MPI_Send", 2, 62, 63);
    job.message(2, "MPI_Recv", 1, 10, 64);
    job.end({61, 63, 64});
    const auto found = delays_of(job);
    ASSERT_GE(found.size(), 1U);
    EXPECT_EQ(found[0].process, 0);
    EXPECT_EQ(found[0].function, "MPI_Send");
    EXPECT_FALSE(found[0].in_call);
    EXPECT_EQ(found[0].short_us, 50);
    EXPECT_NEAR(found[0].long_us, 50, 2.5) << "but for what rank 1 itself took";
}

TEST(DelayCosts, are_of_what_took_longer_than_the_waiter_since_both_met_last) {
    Job job(2);
    job.collective(0, "MPI_Barrier", 1, 20, 22);
    job.collective(1, "MPI_Barrier", 1, 20, 22);
    // Both do the same before a file is opened; that takes rank 1 longer.
    for (int rank = 0; rank < 2; ++rank) job.call(rank, "MPI_File_open", 30, rank == 0 ? 31 : 61);
    job.collective(0, "MPI_Allreduce", 2, 36, 68);
    job.collective(1, "MPI_Allreduce", 2, 66, 68);
    job.end({70, 70});
    EXPECT_THAT(delays_of(job), ElementsAre(CostlyCall{"MPI_File_open", true, 1, 30, 0}));
}

TEST(DelayCosts, tell_what_the_job_would_take_without_a_delay) {
    Job job(3);
    for (int step = 0; step < 2; ++step) {
        const double from = 60 * step;
        const auto instance = static_cast<std::uint64_t>(step + 1);
        job.collective(0, "MPI_Barrier", instance, from + 10, from + 52);
        job.collective(1, "MPI_Barrier", instance, from + 20, from + 52);
        job.collective(2, "MPI_Barrier", instance, from + 50, from + 52);
        for (int rank = 0; rank < 3; ++rank) job.call(rank, "MPI_File_write", from + 52, from + 60);
    }
    job.end({120, 120, 120});
    WaitGraph awaited;
    replay(job.trace(), Costs::measured, {}, &awaited);
    const Delays delays = delay_costs(job.trace(), awaited);
    ASSERT_GE(delays.rows.size(), 1U);
    EXPECT_EQ(delays.rows[0].process, 2);
    EXPECT_NEAR(us(delays.rows[0].removable_s), 80, 0.01) << "rank 0 waited for 40 twice";
    // Then rank 1 is the last, 20 after each begin.
    EXPECT_NEAR(us(time_without(job.trace(), delays.rows[0])), 60, 0.01);
}

TEST(DelayCosts, are_conserved_in_jobs_of_any_kind) {
    for (unsigned seed = 0; seed < 40; ++seed) {
        std::mt19937 random(seed);
        const int ranks = 2 + static_cast<int>(random() % 5);
        Job job(ranks);
        std::vector<double> now(static_cast<std::size_t>(ranks), 0);
        const auto at = [&](int rank) -> double& { return now[static_cast<std::size_t>(rank)]; };
        std::uint64_t instance = 0;
        for (int step = 0; step < 60; ++step) {
            for (double& one : now) one += static_cast<double>(random() % 100) / 10;
            if (random() % 2 == 0) {
                const double last = *std::max_element(now.begin(), now.end());
                ++instance;
                for (int rank = 0; rank < ranks; ++rank) {
                    const double end = last + 1 + static_cast<double>(random() % 20) / 10;
                    job.collective(rank, "MPI_Allreduce", instance, at(rank), end);
                    at(rank) = end;
                }
            } else {
                const int from = static_cast<int>(random() % static_cast<unsigned>(ranks));
                const int to = (from + 1 + static_cast<int>(random() % static_cast<unsigned>(ranks - 1))) % ranks;
                const double end = std::max(at(from), at(to)) + 2;
                job.message(from, "MPI_Send", to, at(from), at(from) + 1);
                job.message(to, "MPI_Recv", from, at(to), end);
                at(from) += 1;
                at(to) = end;
            }
        }
        job.end(now);
        delays_of(job);
        const double time = job.time_us(Costs::measured);
        EXPECT_NEAR(time, us(job.last.measured_s), 0.002) << "seed " << seed;
        EXPECT_LE(job.time_us(Costs::ideal), time) << "seed " << seed;
        EXPECT_EQ(job.last.forced, 0U);
    }
}

}  // namespace
}  // namespace palmette::trace::replay_tests
