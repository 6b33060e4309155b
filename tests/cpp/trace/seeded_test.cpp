// Jobs drawn at random in which one rank is planted as the root of most waiting: it is named first. Their waits are
// computed a second time, from the definitions alone, and all of it for traces that end anywhere, too.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "palmette/trace/causes.hpp"
#include "planted.hpp"

namespace palmette::trace {
namespace {

/// Ranks with a clock each; what they do takes planted times. In microseconds.
class SimulatedRun : public PlantedTrace {
  public:
    SimulatedRun(int ranks, unsigned seed)
        : PlantedTrace(ranks), random(seed), now(static_cast<std::size_t>(ranks), 0.0) {
        for (int rank = 0; rank < ranks; ++rank) call(rank, "MPI_Init", 0, 0);
    }

    int ranks() const { return static_cast<int>(now.size()); }
    double& at(int rank) { return now[static_cast<std::size_t>(rank)]; }
    double noise(double most) { return std::uniform_real_distribution<double>(0, most)(random); }
    int any() { return static_cast<int>(random() % now.size()); }

    void compute(int rank, double time) { at(rank) += time; }
    void compute_all(double time) {
        for (int rank = 0; rank < ranks(); ++rank) compute(rank, time + noise(1));
    }
    void spend_in(int rank, const std::string& function, double time) {
        call(rank, function, at(rank), at(rank) + time);
        at(rank) += time;
    }
    /// All wait for the last one.
    void meet(const std::string& function) {
        const double last = *std::max_element(now.begin(), now.end());
        ++instance_;
        for (int rank = 0; rank < ranks(); ++rank) {
            const double end = last + 2 + noise(0.5);
            collective(rank, function, instance_, at(rank), end);
            if (at(rank) < last) waited += last - at(rank);
            at(rank) = end;
        }
    }
    /// Others wait for the root.
    void broadcast(int root) {
        const double begun = at(root);
        ++instance_;
        for (int rank = 0; rank < ranks(); ++rank) {
            const double end = rank == root ? begun + 1 : std::max(begun, at(rank)) + 2;
            collective(rank, "MPI_Bcast", instance_, at(rank), end, root);
            if (rank != root) waited += std::max(0.0, begun - at(rank));
            at(rank) = end;
        }
    }
    /// An eager message: its receive takes `transfer` once it is sent.
    void send(int from, int to, double transfer) {
        const double sent = at(from);
        message(from, "MPI_Send", to, sent, sent + 1);
        at(from) += 1;
        receive(from, to, sent, transfer);
    }
    void receive(int from, int to, double sent, double transfer) {
        const double end = std::max(at(to), sent) + transfer;
        message(to, "MPI_Recv", from, at(to), end);
        waited += std::max(0.0, sent - at(to));
        at(to) = end;
    }
    /// Each sends to the next and the one before, then receives from both, by requests.
    void halo() {
        constexpr double each = 0.1;
        const std::vector<double> begun = now;
        const int p = ranks();
        for (int rank = 0; rank < p; ++rank) {
            const double mine = at(rank);
            const int next = (rank + 1) % p, before = (rank + p - 1) % p;
            message(rank, "MPI_Isend", next, mine, mine + each).tag = 1;
            message(rank, "MPI_Isend", before, mine + each, mine + 2 * each).tag = 2;
            message(rank, "MPI_Irecv", next, mine + 2 * each, mine + 3 * each).tag = 2;
            message(rank, "MPI_Irecv", before, mine + 3 * each, mine + 4 * each).tag = 1;
            const double last =
                std::max(begun[static_cast<std::size_t>(next)] + each, begun[static_cast<std::size_t>(before)]);
            const double begin = mine + 4 * each;
            const double end = std::max(last, begin) + 2 + noise(0.2);
            message(rank, "MPI_Irecv", next, mine + 2 * each, end, true).tag = 2;
            message(rank, "MPI_Irecv", before, mine + 3 * each, end, true).tag = 1;
            call(rank, "MPI_Waitall", begin, end);
            waited += std::max(0.0, last - begin);
            at(rank) = end;
        }
    }
    void end() {
        for (int rank = 0; rank < ranks(); ++rank) call(rank, "MPI_Finalize", at(rank), at(rank) + 1);
        for (TracedProcess& process : trace().processes) process.end_ns = process.threads[0].events.back().end_ns;
    }

    std::mt19937 random;
    std::vector<double> now;
    double waited = 0;

  private:
    std::uint64_t instance_ = 0;
};

struct Root {
    int rank = 0;
    std::string function;
    bool in_call = false;
};

constexpr int kinds = 7;
constexpr unsigned seeds = 70;

/// Plants a root and returns it.
Root plant(SimulatedRun& job, unsigned seed) {
    const int late = job.any();
    const double by = 30 + job.noise(40);
    const int p = job.ranks();
    switch (seed % kinds) {
        case 0:  // imbalance
            for (int step = 0; step < 5; ++step) {
                job.compute_all(20);
                job.compute(late, by);
                job.meet("MPI_Allreduce");
            }
            return {late, "MPI_Allreduce", false};
        case 1:  // a chain of messages, through ranks that are on time themselves
            job.compute_all(10);
            job.compute(0, by);
            for (int rank = 0; rank + 1 < p; ++rank) {
                job.send(rank, rank + 1, 2);
                job.compute(rank + 1, 3);
            }
            job.meet("MPI_Barrier");
            return {0, "MPI_Send", false};
        case 2: {  // a late sender
            const int to = (late + 1) % p;
            for (int step = 0; step < 4; ++step) {
                job.compute_all(5);
                job.compute(late, by);
                job.send(late, to, 2);
                job.compute(late == 0 ? 1 : 0, 1);
            }
            return {late, "MPI_Send", false};
        }
        case 3: {  // a hot link: a message takes long, and all wait for who gets it
            const int from = (late + 1) % p;
            for (int step = 0; step < 4; ++step) {
                job.compute_all(10);
                job.send(from, late, by);
                job.meet("MPI_Alltoall");
            }
            return {late, "MPI_Recv", true};
        }
        case 4:  // a file
            job.compute_all(10);
            for (int rank = 0; rank < p; ++rank) job.spend_in(rank, "MPI_File_write", rank == late ? by : 1);
            job.meet("MPI_Barrier");
            return {late, "MPI_File_write", true};
        case 5:  // a wave through neighbours, over several synchronisations
            for (int step = 0; step < 6; ++step) {
                job.compute_all(10);
                if (step == 1) job.compute(late, by);
                job.halo();
            }
            return {late, "MPI_Isend", false};
        default:  // the root of broadcasts
            for (int step = 0; step < 4; ++step) {
                job.compute_all(10);
                job.compute(late, by);
                job.broadcast(late);
            }
            return {late, "MPI_Bcast", false};
    }
}

double waiting_of(const Waits& waits) {
    double sum = 0;
    for (const Row& row : waits.rows) sum += row.split.waiting_s;
    return sum;
}

double costs_of(const Delays& delays) {
    double sum = delays.unexplained_s;
    for (const Delay& row : delays.rows) sum += row.short_term_s + row.long_term_s;
    return sum;
}

TEST(Seeded, roots_are_named_first_and_waits_are_as_defined) {
    for (unsigned seed = 0; seed < seeds; ++seed) {
        std::mt19937 size(seed);
        SimulatedRun job(3 + static_cast<int>(size() % 10), seed);
        const Root root = plant(job, seed);
        job.end();
        WaitGraph awaited;
        const Replay again = replay(job.trace(), Costs::measured, {}, &awaited);
        EXPECT_NEAR(again.time_s, again.measured_s, 1e-9) << "seed " << seed;
        EXPECT_EQ(again.forced, 0U) << "seed " << seed;
        const Delays delays = delay_costs(job.trace(), awaited);
        ASSERT_FALSE(delays.rows.empty()) << "seed " << seed;
        const Delay& first = delays.rows[0];
        EXPECT_EQ(first.process, root.rank) << "seed " << seed;
        EXPECT_EQ(job.trace().functions[first.function], root.function) << "seed " << seed;
        EXPECT_EQ(first.in_call, root.in_call) << "seed " << seed;
        // Begins are rounded down to nanoseconds.
        const double calls = 1e-9 * 200 * job.ranks();
        EXPECT_NEAR(waiting_of(find_waits(job.trace())), job.waited * 1e-6, calls) << "seed " << seed;
        EXPECT_NEAR(delays.waiting_s, job.waited * 1e-6, calls) << "seed " << seed;
        EXPECT_NEAR(costs_of(delays), delays.waiting_s, 1e-9) << "seed " << seed;
    }
}

TEST(Seeded, jobs_of_a_thousand_ranks_give_their_time_again) {
    for (unsigned seed = 0; seed < kinds; ++seed) {
        SimulatedRun job(1024, seed);
        const Root root = plant(job, seed);
        job.end();
        WaitGraph awaited;
        const Replay again = replay(job.trace(), Costs::measured, {}, &awaited);
        EXPECT_NEAR(again.time_s, again.measured_s, 1e-9) << "seed " << seed;
        EXPECT_EQ(again.forced, 0U) << "seed " << seed;
        const Delays delays = delay_costs(job.trace(), awaited);
        ASSERT_FALSE(delays.rows.empty());
        EXPECT_EQ(delays.rows[0].process, root.rank) << "seed " << seed;
        EXPECT_NEAR(delays.waiting_s, job.waited * 1e-6, 1e-5 * delays.waiting_s + 1e-5) << "seed " << seed;
        EXPECT_NEAR(costs_of(delays), delays.waiting_s, 1e-6 * delays.waiting_s) << "seed " << seed;
    }
}

TEST(Seeded, critical_paths_are_as_long_as_the_job) {
    for (unsigned seed = 0; seed < seeds; ++seed) {
        SimulatedRun job(6, seed);
        plant(job, seed);
        job.end();
        WaitGraph awaited;
        const Replay again = replay(job.trace(), Costs::measured, {}, &awaited);
        const CriticalPath path = critical_path(job.trace(), awaited);
        double sum = 0;
        for (const OnPath& row : path.rows) sum += row.before_s + row.in_call_s;
        EXPECT_NEAR(sum, again.measured_s, 1e-8) << "seed " << seed;
        for (std::size_t i = 1; i < path.stretches.size(); ++i)
            EXPECT_EQ(path.stretches[i].begin_ns, path.stretches[i - 1].end_ns) << "seed " << seed;
    }
}

TEST(Seeded, traces_that_end_anywhere_are_analysed_as_far_as_they_go) {
    for (unsigned seed = 0; seed < 2 * seeds; ++seed) {
        SimulatedRun job(5, seed);
        plant(job, seed);
        job.end();
        // Ranks die at different times; requests stand before the call that completes them.
        std::mt19937 random(seed);
        for (TracedProcess& process : job.trace().processes) {
            auto& events = process.threads[0].events;
            std::size_t kept = 1 + random() % events.size();
            while (kept > 1 && events[kept - 1].is_request) --kept;
            events.resize(kept);
            process.end_ns = events.back().end_ns;
        }
        WaitGraph awaited;
        const Replay again = replay(job.trace(), Costs::measured, {}, &awaited);
        EXPECT_NEAR(again.time_s, again.measured_s, 1e-9) << "seed " << seed;
        EXPECT_LE(replay(job.trace(), Costs::ideal).time_s, again.time_s + 1e-9) << "seed " << seed;
        const Delays delays = delay_costs(job.trace(), awaited);
        EXPECT_NEAR(costs_of(delays), delays.waiting_s, 1e-9) << "seed " << seed;
        EXPECT_LE(waiting_of(find_waits(job.trace())), job.waited * 1e-6 + 1e-6) << "seed " << seed;
    }
}

}  // namespace
}  // namespace palmette::trace
