#include "palmette/trace/late.hpp"

#include "palmette/base/error.hpp"
#include "palmette/trace/causes.hpp"
#include "planted.hpp"

namespace palmette::trace {
namespace {

ContextInfo frame(std::uint32_t parent, const std::string& function) {
    ContextInfo one;
    one.parent = parent;
    one.kind = ContextKind::python;
    one.module = "a.py";
    one.function = function;
    one.samples = 1;
    one.cpu_s = 0.5;
    return one;
}

TEST(JobContexts, those_with_the_same_frames_are_one) {
    JobContexts job;
    const auto first = job.add({{}, frame(0, "main"), frame(1, "smooth"), frame(1, "read")}, 0);
    const auto second = job.add({{}, frame(0, "main"), frame(1, "read"), frame(2, "smooth")}, 1);
    EXPECT_EQ(first, (std::vector<std::uint32_t>{0, 1, 2, 3}));
    EXPECT_EQ(second, (std::vector<std::uint32_t>{0, 1, 3, 4}));
    EXPECT_EQ(job.frames.size(), 3);
    ASSERT_EQ(job.nodes.size(), 5);
    EXPECT_EQ(job.nodes[4].parent, 3);
    EXPECT_EQ(job.sums.size(), 6);
}

TEST(JobContexts, shares_of_several_readers_are_what_one_has_read) {
    const std::vector<std::vector<ContextInfo>> of_processes{
        {{}, frame(0, "main"), frame(1, "smooth")},
        {{}, frame(0, "main"), frame(1, "read"), frame(2, "smooth")},
        {{}, frame(0, "thread"), frame(1, "smooth")}};
    ReadContexts all;
    std::vector<ReadContexts> parts(of_processes.size());
    for (std::int32_t i = 0; i < 3; ++i) {
        const auto& one = of_processes[static_cast<std::size_t>(i)];
        all.contexts.add(one, i);
        all.ranks.push_back(10 - i);
        parts[static_cast<std::size_t>(i)].contexts.add(one, 0);
        parts[static_cast<std::size_t>(i)].ranks.push_back(10 - i);
    }
    ReadContexts right = parts[1], left = parts[0];
    right.append(parts[2].packed());
    left.append(right.packed());
    EXPECT_EQ(left.packed(), all.packed()) << "pairs of pairs";
    left = parts[0];
    left.append(parts[1].packed());
    left.append(ReadContexts{}.packed());
    left.append(parts[2].packed());
    EXPECT_EQ(left.packed(), all.packed()) << "one after the other, one of which has nothing";

    const std::string packed = parts[1].packed();
    for (std::size_t bytes = 0; bytes < packed.size(); ++bytes)
        EXPECT_THROW(left.append(packed.substr(0, bytes)), base::Error) << bytes;
    EXPECT_THROW(left.append(packed + "?"), base::Error);
    ReadContexts wrong = parts[1];
    wrong.contexts.nodes[2].parent = 2;
    EXPECT_THROW(left.append(wrong.packed()), base::Error) << "it would be its own caller";
    wrong = parts[1];
    wrong.contexts.sums[0].process = 1;
    EXPECT_THROW(left.append(wrong.packed()), base::Error) << "there is one process";
}

/// Two barriers of 3 ranks: between them rank 1 computes from 20 us on for 100 us, rank 0 for 40, rank 2 for 60.
class LateWorkTest : public testing::Test {
  protected:
    LateWorkTest() : job_(3) {
        job_.trace().contexts.add({{}, frame(0, "main"), frame(1, "smooth"), frame(1, "other")}, 0);
        for (int rank = 0; rank < 3; ++rank) {
            job_.call(rank, "MPI_Init", 0, 1);
            job_.collective(rank, "MPI_Barrier", 1, 10, 20);
        }
        job_.collective(0, "MPI_Allreduce", 2, 60, 121);
        job_.collective(1, "MPI_Allreduce", 2, 120, 121);
        job_.collective(2, "MPI_Allreduce", 2, 80, 121);
        for (int rank = 0; rank < 3; ++rank) job_.call(rank, "MPI_Finalize", 130, 140);
    }
    void sample(int rank, double at_us, std::uint32_t context, double cpu_us) {
        job_.trace().processes[static_cast<std::size_t>(rank)].threads[0].samples.push_back(
            {static_cast<std::int64_t>(at_us * 1e3), context, static_cast<float>(cpu_us * 1e-6)});
    }
    std::vector<LateWork> works() {
        WaitGraph awaited;
        replay(job_.trace(), Costs::measured, {}, &awaited);
        return delay_costs(job_.trace(), awaited).works;
    }
    PlantedTrace job_;
};

TEST_F(LateWorkTest, is_what_lies_between_the_calls) {
    sample(1, 15, 2, 50);  // in a call
    sample(1, 40, 2, 30);
    sample(1, 70, 3, 20);
    sample(1, 90, 2, 30);
    sample(1, 120.5, 2, 50);
    sample(0, 30, 2, 10);
    sample(0, 50, 2, 10);
    sample(0, 100, 3, 70);  // it waits
    sample(2, 30, 2, 20);
    const auto found = works();
    ASSERT_EQ(found.size(), 1);
    const LateWork& work = found[0];
    EXPECT_EQ(job_.trace().functions[work.function], "MPI_Allreduce");
    EXPECT_EQ(work.process, 1);
    EXPECT_EQ(work.instances, 1);
    EXPECT_EQ(work.waiters, (std::vector<std::int32_t>{0, 2}));
    ASSERT_EQ(work.gaps.size(), 1);
    EXPECT_EQ(job_.trace().functions[work.gaps[0].before_function], "MPI_Barrier");
    EXPECT_NEAR(work.gaps[0].late_s, 100e-6, 1e-9);
    EXPECT_NEAR(work.gaps[0].late_cpu_s, 80e-6, 1e-9);
    // Of those that wait the mean by how long they wait: 60 and 40 us.
    EXPECT_NEAR(work.gaps[0].other_s, (0.6 * 40 + 0.4 * 60) * 1e-6, 1e-9);
    EXPECT_NEAR(work.gaps[0].other_cpu_s, 20e-6, 1e-9);
    ASSERT_EQ(work.contexts.size(), 2);
    EXPECT_EQ(work.contexts[0].context, 2);
    EXPECT_NEAR(work.contexts[0].late_s, 60e-6, 1e-9);
    EXPECT_NEAR(work.contexts[0].other_s, 20e-6, 1e-9);
    EXPECT_NEAR(work.contexts[1].late_s, 20e-6, 1e-9);
    EXPECT_EQ(work.contexts[1].other_s, 0);
}

TEST_F(LateWorkTest, other_threads_are_beside_it) {
    sample(1, 40, 2, 1);
    job_.trace().processes[1].beside.push_back({70'000, 3, 40e-6F});
    const auto found = works();
    ASSERT_EQ(found.size(), 1);
    ASSERT_EQ(found[0].beside.size(), 1);
    EXPECT_EQ(found[0].beside[0].context, 3);
    EXPECT_NEAR(found[0].beside[0].late_s, 40e-6, 1e-9);
}

TEST_F(LateWorkTest, the_kernel_tells_states_off_the_processor) {
    sample(1, 40, 2, 1);
    const auto between = [](double at_us, const OffProcessor& off) {
        return OffBetween{static_cast<std::int64_t>(at_us * 1e3), off};
    };
    auto& processes = job_.trace().processes;
    processes[1].threads[0].off = {between(9.9, {7, 7, 7}), between(119.9, {30e-6, 20e-6, 0}), between(129, {7, 7, 7})};
    processes[0].threads[0].off = {between(59.9, {10e-6, 0, 5e-6})};
    const auto found = works();
    ASSERT_EQ(found.size(), 1);
    const GapTime& gap = found[0].gaps[0];
    EXPECT_NEAR(gap.late_off.put_aside_s, 30e-6, 1e-9);
    EXPECT_NEAR(gap.late_off.io_s, 20e-6, 1e-9);
    EXPECT_EQ(gap.late_off.asleep_s, 0);
    // Rank 0 waits for 60 us of 100.
    EXPECT_NEAR(gap.other_off.put_aside_s, 6e-6, 1e-9);
    EXPECT_NEAR(gap.other_off.asleep_s, 3e-6, 1e-9);
    const auto times = processor_times(job_.trace(), 10'000, 129'000);
    EXPECT_NEAR(times[1].off.put_aside_s, 30e-6, 1e-9);
}

TEST_F(LateWorkTest, without_samples_there_is_none) {
    job_.trace().contexts = {};
    EXPECT_TRUE(works().empty());
}

TEST_F(LateWorkTest, processor_time_is_told_apart_by_calls) {
    sample(1, 15, 2, 5);
    sample(1, 40, 2, 30);
    sample(1, 120.5, 2, 7);
    sample(1, 135, 2, 100);  // behind the end
    const auto times = processor_times(job_.trace(), 1'000, 130'000);
    ASSERT_EQ(times.size(), 3);
    EXPECT_NEAR(times[1].computing_s, 30e-6, 1e-9);
    EXPECT_NEAR(times[1].in_calls_s, 12e-6, 1e-9);
    EXPECT_EQ(times[0].computing_s, 0);
}

}  // namespace
}  // namespace palmette::trace
