// Many calls of the same kind, so that palmette compares its choice with the MPI's own: integers are broadcast, summed,
// gathered and exchanged, real numbers reduced in all ways, and every result is checked. Ranks come late in turns.
//
//     comparison [--calls N] [--count INTEGERS] [--vary PERCENT] [--reals 0] [--same-bits 1] [--duplicates N]
//
// With --vary the count falls by up to so much from call to call, and roots change. With --reals 0 nothing real is
// reduced, with --same-bits 1 sums of the same real numbers must not differ by a bit. Duplicates of the world gather as
// often again, one after the other.

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "support/outcome.hpp"

using namespace test;

namespace {

/// All functions that add up, on the same real numbers at each call.
class Reals {
  public:
    Reals(int ranks, bool same_bits)
        : ranks_(ranks),
          same_bits_(same_bits),
          input_(static_cast<std::size_t>(8 * ranks)),
          counts_(input_.size() / 8, 8) {
        for (std::size_t i = 0; i < input_.size(); ++i) input_[i] = value(world_rank, i);
    }

    void reduce(int call, int root, Outcome& outcome) {
        const double* in = input_.data();
        const auto mine = static_cast<std::size_t>(8 * world_rank);
        std::vector<double> out(8, -1), all = input_;
        MPI_Allreduce(in, out.data(), 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        check(outcome, call, "allreduce", out, ranks_, 0);
        MPI_Allreduce(MPI_IN_PLACE, all.data(), 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        check(outcome, call, "allreduce in place", all, ranks_, 0);
        MPI_Reduce(in, out.data(), 8, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
        if (world_rank == root) check(outcome, call, "reduce", out, ranks_, 0);
        MPI_Reduce_scatter_block(in, out.data(), 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        check(outcome, call, "reduce_scatter_block", out, ranks_, mine);
        all = input_;
        MPI_Reduce_scatter(MPI_IN_PLACE, all.data(), counts_.data(), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        check(outcome, call, "reduce_scatter in place", all, ranks_, mine);
        MPI_Scan(in, out.data(), 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        check(outcome, call, "scan", out, world_rank + 1, 0);
        MPI_Exscan(in, out.data(), 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (world_rank > 0) check(outcome, call, "exscan", out, world_rank, 0);
    }

  private:
    static double value(int rank, std::size_t i) { return 1.0 / (3 + rank + static_cast<double>(i)); }

    void check(Outcome& outcome, int call, const char* what, const std::vector<double>& out, int ranks,
               std::size_t at) {
        for (std::size_t i = 0; i < 8; ++i) {
            double sum = 0;
            for (int r = 0; r < ranks; ++r) sum += value(r, at + i);
            outcome.check(std::abs(out[i] - sum) < 1e-13, "call %d: %s", call, what);
        }
        std::vector<double>& first = first_[what];
        if (first.empty()) first.assign(out.begin(), out.begin() + 8);
        if (same_bits_)
            outcome.check(std::memcmp(first.data(), out.data(), 8 * sizeof(double)) == 0, "call %d: other bits of %s",
                          call, what);
    }

    int ranks_;
    bool same_bits_;
    std::vector<double> input_;
    std::vector<int> counts_;
    std::map<std::string, std::vector<double>> first_;
};

/// Functions in which each call brings its own lengths, of which ranks don't know all.
class OwnLengths {
  public:
    explicit OwnLengths(int ranks) : counts_(static_cast<std::size_t>(ranks)), starts_(counts_.size()) {}

    void exchange(int call, int count, std::vector<int>& room, Outcome& outcome) {
        for (std::size_t r = 0; r < counts_.size(); ++r) {
            counts_[r] = count / 2;
            starts_[r] = static_cast<int>(r) * counts_[r];
        }
        std::vector<int> mine(room.size() / 2 + 1, world_rank + call);
        MPI_Allgatherv(mine.data(), count / 2, MPI_INT, room.data(), counts_.data(), starts_.data(), MPI_INT,
                       MPI_COMM_WORLD);
        check(call, "allgatherv", room, outcome);
        std::fill(room.begin(), room.end(), -1);
        MPI_Alltoallv(mine.data(), counts_.data(), starts_.data(), MPI_INT, room.data(), counts_.data(), starts_.data(),
                      MPI_INT, MPI_COMM_WORLD);
        check(call, "alltoallv", room, outcome);
    }

  private:
    void check(int call, const char* what, const std::vector<int>& room, Outcome& outcome) {
        for (std::size_t r = 0; r < counts_.size(); ++r)
            outcome.check(room[static_cast<std::size_t>(starts_[r])] == static_cast<int>(r) + call, "call %d: %s", call,
                          what);
    }

    std::vector<int> counts_, starts_;
};

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    watch(100);
    const long calls = option(argc, argv, "--calls", 400);
    const int most = static_cast<int>(option(argc, argv, "--count", 1000));
    const long vary = option(argc, argv, "--vary", 0);
    const bool with_reals = option(argc, argv, "--reals", 1) != 0;
    const bool same_bits = option(argc, argv, "--same-bits", 0) != 0;
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    Outcome outcome;
    std::vector<int> vector(static_cast<std::size_t>(most)), sum(vector.size());
    std::vector<int> all(vector.size() * static_cast<std::size_t>(ranks));
    Reals reals(ranks, same_bits);
    OwnLengths lengths(ranks);
    for (int call = 0; call < calls; ++call) {
        const int count = most - static_cast<int>(call * 37 % 101 * most * vary / 10100);
        const int root = vary > 0 ? static_cast<int>(call % ranks) : 1;
        const auto n = static_cast<std::size_t>(count);
        if (world_rank == root) std::iota(vector.begin(), vector.end(), call);
        if (call % ranks == world_rank && call % 16 == 0) {
            for (const double until = MPI_Wtime() + 1e-4; MPI_Wtime() < until;) continue;
        }
        MPI_Bcast(vector.data(), count, MPI_INT, root, MPI_COMM_WORLD);
        outcome.check(vector[0] == call && vector[n - 1] == call + count - 1, "call %d: bcast", call);
        MPI_Allreduce(vector.data(), sum.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        outcome.check(sum[n - 1] == ranks * (call + count - 1), "call %d: allreduce", call);
        vector[n - 1] = world_rank;
        MPI_Allgather(vector.data(), count, MPI_INT, all.data(), count, MPI_INT, MPI_COMM_WORLD);
        for (int r = 0; r < ranks; ++r)
            outcome.check(all[static_cast<std::size_t>(r + 1) * n - 1] == r, "call %d: allgather", call);
        lengths.exchange(call, count, all, outcome);
        if (with_reals) reals.reduce(call, root, outcome);
    }
    for (long d = option(argc, argv, "--duplicates", 0); d > 0; --d) {
        MPI_Comm duplicate = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
        for (int call = 0; call < calls; ++call)
            MPI_Allgather(vector.data(), most, MPI_INT, all.data(), most, MPI_INT, duplicate);
        MPI_Comm_free(&duplicate);
    }
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
