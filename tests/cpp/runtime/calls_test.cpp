// What stands around a call: the fast path, comparing, the report and other observers.
#include <gtest/gtest.h>

#include "palmette/runtime/compare/comparison.hpp"
#include "palmette/runtime/observe/observer.hpp"
#include "palmette/runtime/observe/report.hpp"
#include "palmette/runtime/state/bypass.hpp"
#include "palmette/runtime/state/work.hpp"

namespace palmette::runtime {
namespace {

using select::Function;

class FastPath : public testing::Test {
  protected:
    void SetUp() override { Report::Counter::concurrent = false; }
    void TearDown() override {
        bypass.close();
        Report::Counter::concurrent = true;
    }
    Bypass bypass;
    Report::RefusedRow row;
};

TEST_F(FastPath, takes_what_it_was_opened_for_and_nothing_else) {
    EXPECT_FALSE(bypass.takes(MPI_COMM_WORLD));
    bypass.open({MPI_COMM_WORLD, 4, true}, row, MPI_INT, 2, 100);
    EXPECT_TRUE(bypass.takes(MPI_COMM_WORLD, 2, MPI_INT, MPI_OP_NULL, 0));
    EXPECT_TRUE(bypass.takes(MPI_COMM_WORLD, 100, MPI_INT, MPI_OP_NULL, 0));
    EXPECT_FALSE(bypass.takes(MPI_COMM_WORLD, 1, MPI_INT, MPI_OP_NULL, 0));
    EXPECT_FALSE(bypass.takes(MPI_COMM_WORLD, 101, MPI_INT, MPI_OP_NULL, 0));
    EXPECT_FALSE(bypass.takes(MPI_COMM_WORLD, -5, MPI_INT, MPI_OP_NULL, 0));
    EXPECT_FALSE(bypass.takes(MPI_COMM_WORLD, 2, MPI_DOUBLE, MPI_OP_NULL, 0));
    EXPECT_FALSE(bypass.takes(MPI_COMM_SELF, 2, MPI_INT, MPI_OP_NULL, 0));
    EXPECT_FALSE(bypass.takes(MPI_COMM_WORLD)) << "only some sizes are the MPI's";
}

TEST_F(FastPath, counts_at_the_end_what_it_took) {
    bypass.open({MPI_COMM_WORLD, 4, true}, row);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(bypass.takes(MPI_COMM_WORLD));
    EXPECT_EQ(row.calls.operations(), 0);
    bypass.close();
    EXPECT_EQ(row.calls.operations(), 5);
    EXPECT_FALSE(bypass.takes(MPI_COMM_WORLD));
}

TEST_F(FastPath, stays_closed_where_threads_call_at_the_same_time) {
    Report::Counter::concurrent = true;
    bypass.open({MPI_COMM_WORLD, 4, true}, row);
    EXPECT_FALSE(bypass.takes(MPI_COMM_WORLD));
}

TEST_F(FastPath, takes_calls_with_the_same_arguments_up_to_a_limit_and_counts_them_where_told) {
    std::int64_t counted = 7;
    const auto takes = [&](int count, MPI_Datatype type, MPI_Op op, int root) {
        return bypass.takes(MPI_COMM_WORLD, count, type, op, root);
    };
    bypass.open({MPI_COMM_WORLD, 4, true}, row, {5, MPI_INT, MPI_SUM, 1}, 2, counted);
    EXPECT_FALSE(takes(4, MPI_INT, MPI_SUM, 1) || takes(6, MPI_INT, MPI_SUM, 1) || takes(5, MPI_FLOAT, MPI_SUM, 1));
    EXPECT_FALSE(takes(5, MPI_INT, MPI_MAX, 1) || takes(5, MPI_INT, MPI_SUM, 0));
    EXPECT_FALSE(bypass.takes(MPI_COMM_WORLD)) << "not any length";
    EXPECT_TRUE(takes(5, MPI_INT, MPI_SUM, 1));
    bypass.settle();
    EXPECT_EQ(counted, 8);
    EXPECT_FALSE(takes(5, MPI_INT, MPI_SUM, 1)) << "it was settled";
    bypass.open({MPI_COMM_WORLD, 4, true}, row, {5, MPI_INT, MPI_SUM, 1}, 2, counted);
    EXPECT_TRUE(takes(5, MPI_INT, MPI_SUM, 1) && takes(5, MPI_INT, MPI_SUM, 1));
    EXPECT_FALSE(takes(5, MPI_INT, MPI_SUM, 1)) << "the next is compared";
    bypass.close();
    EXPECT_EQ(counted, 10);
    EXPECT_EQ(row.calls.operations(), 3);
    bypass.open({MPI_COMM_WORLD, 4, true}, row, {0, MPI_DATATYPE_NULL, MPI_OP_NULL, 0}, 1, counted);
    EXPECT_TRUE(bypass.takes(MPI_COMM_WORLD));
    EXPECT_FALSE(bypass.takes(MPI_COMM_WORLD));
}

class Comparing : public testing::Test {
  protected:
    /// Calls until one is due, at most `most`; how many came before it.
    int calls_until_due(Comparison& comparison, int most) {
        for (int i = 0; i < most; ++i)
            if (comparison.due(64)) return i;
        return most;
    }
    static int right() { return MPI_SUCCESS; }
};

/// The next pair, when it is due, in which ours takes so many times as long as the MPI's second.
void pair(Comparison& comparison, double ratio) {
    for (int half = 0; half < 2; ++half) {
        while (!comparison.due(64)) continue;
        comparison.record(comparison.turn(), comparison.turn() == Comparison::Turn::ours ? ratio : 1, MPI_SUCCESS);
    }
}

TEST_F(Comparing, a_choice_on_trial_serves_only_after_it_has_won) {
    Comparison comparison(MPI_COMM_SELF, {.share = 0.5, .on_trial = true});
    for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(comparison.mpi_meanwhile());
        pair(comparison, 0.9);
    }
    EXPECT_EQ(comparison.pairs(), 4) << "in the first one connections are made";
    EXPECT_TRUE(comparison.mpi_meanwhile());
    pair(comparison, 0.9);
    EXPECT_EQ(comparison.verdict(), select::Verdict::faster);
    EXPECT_FALSE(comparison.mpi_meanwhile());
}

TEST_F(Comparing, a_measured_choice_serves_until_it_seems_to_lose) {
    Comparison comparison(MPI_COMM_SELF, {.share = 0.5});
    EXPECT_FALSE(comparison.mpi_meanwhile());
    for (int i = 0; i < 2; ++i) pair(comparison, 5);
    EXPECT_TRUE(comparison.mpi_meanwhile());
    EXPECT_FALSE(comparison.lost());
    for (int i = 0; i < 2; ++i) pair(comparison, 5);
    EXPECT_TRUE(comparison.lost());
}

TEST_F(Comparing, where_bits_depend_on_it_nobody_changes_before_the_verdict_nor_after_it) {
    Comparison bits(MPI_COMM_SELF, {.share = 0.5, .on_trial = true, .once = true});
    Comparison exact(MPI_COMM_SELF, {.share = 0.5, .on_trial = true});
    for (int i = 0; i < 4; ++i) pair(bits, 0.7), pair(exact, 0.7);
    EXPECT_TRUE(bits.mpi_meanwhile()) << "it seems to win";
    EXPECT_FALSE(exact.mpi_meanwhile());
    for (int i = 0; i < 2; ++i) pair(bits, 0.7);
    EXPECT_FALSE(bits.mpi_meanwhile());
    EXPECT_EQ(calls_until_due(bits, 100000), 100000);
}

TEST_F(Comparing, a_choice_on_trial_that_is_no_faster_is_the_mpis_in_the_end) {
    Comparison trial(MPI_COMM_SELF, {.share = 0.5, .on_trial = true}), measured(MPI_COMM_SELF, {.share = 0.5});
    for (int i = 0; i < 26; ++i) pair(trial, 1.02), pair(measured, 1.02);
    EXPECT_EQ(trial.verdict(), select::Verdict::same);
    EXPECT_TRUE(trial.lost());
    EXPECT_EQ(measured.verdict(), select::Verdict::same);
    EXPECT_FALSE(measured.lost());
}

TEST_F(Comparing, what_has_won_elsewhere_serves_at_once) {
    Comparison comparison(MPI_COMM_SELF, {.share = 0.5, .on_trial = true, .won = true});
    EXPECT_FALSE(comparison.mpi_meanwhile());
    EXPECT_GT(calls_until_due(comparison, 1000), 100);
}

TEST_F(Comparing, takes_turns_and_settles_with_the_second_call) {
    Comparison comparison(MPI_COMM_SELF, {.share = 0.5});
    EXPECT_EQ(calls_until_due(comparison, 1000), 0);
    const auto turn = comparison.turn();
    EXPECT_EQ(turn, Comparison::Turn::mpi);
    int code = -1;
    EXPECT_FALSE(comparison.time(right, code)) << "one call shows nothing";
    EXPECT_EQ(code, MPI_SUCCESS);
    EXPECT_TRUE(comparison.due(64));
    EXPECT_EQ(comparison.turn(), Comparison::Turn::ours);
    EXPECT_TRUE(comparison.time(right, code));
}

TEST_F(Comparing, learns_nothing_from_calls_that_fail) {
    Comparison comparison(MPI_COMM_SELF, {.share = 0.5});
    calls_until_due(comparison, 1000);
    int code = MPI_SUCCESS;
    comparison.time([] { return MPI_ERR_OTHER; }, code);
    EXPECT_EQ(code, MPI_ERR_OTHER);
    EXPECT_FALSE(comparison.time(right, code));
    EXPECT_EQ(comparison.pairs(), 0);
    EXPECT_FALSE(comparison.lost());
}

TEST_F(Comparing, of_unlike_calls_counts_for_nothing) {
    Comparison comparison(MPI_COMM_SELF, {.share = 0.5});
    calls_until_due(comparison, 1000);
    int code = MPI_SUCCESS;
    comparison.due(100);
    comparison.time(right, code);
    comparison.due(1000);
    comparison.time(right, code);
    EXPECT_FALSE(comparison.comparable());
    EXPECT_EQ(comparison.pairs(), 0);
}

TEST(Report, counts_by_function_size_and_algorithm) {
    Report report;
    Report::ServedRow& row = report.served_row(Function::bcast, 1024, "ring", "a test");
    EXPECT_EQ(&report.served_row(Function::bcast, 1023, "ring", "a test"), &row) << "one class of sizes";
    EXPECT_NE(&report.served_row(Function::bcast, 1 << 20, "ring", "a test"), &row);
    EXPECT_NE(&report.served_row(Function::bcast, 1024, "tree", "a test"), &row);
    row.calls.add(true);
    row.calls.add(false);
    EXPECT_EQ(report.served_calls(Function::bcast), 2);
    report.timed(row, 0.5);
    report.timed(row, 1.5);
    EXPECT_DOUBLE_EQ(row.mean_seconds(), 1.0);
    EXPECT_DOUBLE_EQ(row.multiple(), 0) << "no bound is known";
    report.bounded(row, 0.25);
    report.bounded(row, 0.25);
    EXPECT_GT(row.multiple(), 1);
}

TEST(Report, says_what_to_do_where_nothing_was_compared) {
    Report report;
    Report::ServedRow& served = report.served_row(Function::allgather, 1024, "ring", "");
    for (int call = 0; call < 60; ++call) served.calls.add(true);
    const std::string text = report.to_json(4, 2.0, base::Json()).find("gain")->find("sentence")->string("sentence");
    EXPECT_NE(text.find("not compared with the MPI alone; run longer, or: palmette "
                        "run --compare"),
              std::string::npos)
        << text;
}

TEST(Report, tells_first_what_served_calls_took_and_saved) {
    Report report;
    Report::ServedRow& fast = report.served_row(Function::bcast, 1024, "ring", "a test");
    for (int rank = 0; rank < 4; ++rank) {
        for (int call = 0; call < 100; ++call) fast.calls.add(rank == 0);
        report.timed(fast, 0.5);
    }
    const auto gain = [&](const char* name) { return *report.to_json(4, 2.0, base::Json()).find("gain")->find(name); };
    const auto text = [&] { return gain("sentence").string("sentence"); };
    const std::string took = "served collectives took 500 ms of a rank's time (25 %); ";
    const std::string advice = "; run longer, or: palmette run --compare mpiexec ...";
    EXPECT_EQ(text(), took + "not compared with the MPI alone" + advice);
    Report::ComparisonRow& compared = report.compared_row(Function::bcast, 1024, "ring");
    compared.pairs = 3, compared.ours_s = 4e-3, compared.mpi_s = 9e-3, compared.cost_s = 0.1;
    ++compared.of(select::Verdict::open);
    EXPECT_EQ(text(), took + "whether the MPI alone is slower isn't known yet (3 pairs of calls compared)" + advice);
    --compared.of(select::Verdict::open);
    ++compared.of(select::Verdict::faster);
    // A rank's 100 calls, 5 ms each, less what comparing cost.
    EXPECT_NEAR(gain("saved_seconds").number("saved_seconds"), 0.4, 1e-12);
    EXPECT_NE(text().find("about 400 ms less than with the MPI alone (3 pairs of calls compared)"), std::string::npos)
        << text();
    report.served_row(Function::allreduce, 8, "ring", "").calls.add(true);
    EXPECT_NE(text().find("; 1 kind not compared)"), std::string::npos) << text();
    Report::ComparisonRow& other = report.compared_row(Function::allreduce, 8, "ring");
    other.pairs = 1;
    ++other.of(select::Verdict::open);
    EXPECT_NE(text().find("4 pairs of calls compared; 1 of 2 kinds still open)"), std::string::npos) << text();
    compared.ours_s = 9e-3;
    EXPECT_NE(text().find("about 100 ms more than"), std::string::npos) << "only what comparing cost: " << text();
    EXPECT_EQ(gain("open_kinds").integer("open_kinds"), 1);
    const std::string page = report.page(4, 2.0);
    EXPECT_LT(page.find("served collectives took"), page.find("bcast"));
}

TEST(Report, tells_refusals_with_their_reasons) {
    Report report;
    report.refused_row(Function::gather, Refusal::precondition, "too few ranks").calls.add(true);
    const std::string text = report.to_json(1, 1.0, base::Json()).dump();
    EXPECT_NE(text.find("too few ranks"), std::string::npos);
    EXPECT_NE(text.find(sentence_of(Refusal::precondition)), std::string::npos);
}

struct CountingObserver : Observer {
    explicit CountingObserver(int& all, bool steps = false) : calls(all), steps_too(steps) {}
    void call_ended(const CallEvent&) override { ++calls; }
    bool wants_steps() const override { return steps_too; }
    int& calls;
    bool steps_too;
};

TEST(Observers, are_nobody_until_one_is_there) {
    Observers observers;
    EXPECT_EQ(observers.of_calls(), nullptr);
    EXPECT_EQ(observers.of_steps(), nullptr);
    int first = 0, second = 0;
    observers.add(std::make_unique<CountingObserver>(first));
    const Work work;
    observers.of_calls()->call_ended({work});
    observers.add(std::make_unique<CountingObserver>(second, true));
    observers.of_calls()->call_ended({work});
    EXPECT_EQ(first, 2);
    EXPECT_EQ(second, 1);
    EXPECT_NE(observers.of_steps(), nullptr);
    observers.clear();
    EXPECT_EQ(observers.of_calls(), nullptr);
}

}  // namespace
}  // namespace palmette::runtime
