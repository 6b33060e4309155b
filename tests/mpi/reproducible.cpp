// Sums and products of random real numbers, whose last bits depend on the order of the operands: the same bits on all
// ranks, the same when the call is made again, also on a duplicate of the communicator, and close to what the MPI
// finds. Rank 0 prints a digest of all results, so that runs can be compared.
//
//     reproducible [--seed N] [--cases N] [--timeout SECONDS]

#include <mpi.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "support/call.hpp"
#include "support/case.hpp"
#include "support/outcome.hpp"
#include "support/rng.hpp"

using namespace test;

namespace {

std::uint64_t digest_of(const std::vector<char>& bytes, std::uint64_t start) {
    std::uint64_t hash = start;
    for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;  // FNV-1a
    return hash;
}

/// Numbers of very different size, so that order shows; close to 1 for products.
template <class Real>
std::vector<char> numbers(Rng& rng, int count, bool product) {
    std::vector<char> data(static_cast<std::size_t>(count) * sizeof(Real));
    for (int i = 0; i < count; ++i) {
        const double unit = static_cast<double>(rng.next() >> 11) * 0x1p-53;
        const double value = product ? 0.75 + unit / 2 : std::ldexp(unit - 0.5, rng.between(-8, 8));
        const Real number = static_cast<Real>(value);
        std::memcpy(&data[static_cast<std::size_t>(i) * sizeof(Real)], &number, sizeof number);
    }
    return data;
}

/// The largest difference, in units of the sum of magnitudes (or, with products, of the result).
template <class Real>
double distance(const std::vector<char>& a, const std::vector<char>& b, const std::vector<double>& scale) {
    double worst = 0;
    for (std::size_t i = 0; i < scale.size(); ++i) {
        Real x, y;
        std::memcpy(&x, &a[i * sizeof(Real)], sizeof x);
        std::memcpy(&y, &b[i * sizeof(Real)], sizeof y);
        worst = std::max(worst, std::abs(static_cast<double>(x) - static_cast<double>(y)) / scale[i]);
    }
    return worst;
}

class Case {
  public:
    Case(std::uint64_t seed, long number, MPI_Comm comm, MPI_Comm dup) : comm_(comm), dup_(dup) {
        Rng shared(seed, static_cast<std::uint64_t>(number), 0);
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_size(comm, &size_);
        static const Function functions[] = {Function::allreduce, Function::allreduce,
                                             Function::reduce,    Function::reduce_scatter_block,
                                             Function::scan,      Function::exscan};
        function_ = functions[shared.below(6)];
        product_ = shared.one_in(3);
        real_bytes_ = shared.one_in(2) ? sizeof(float) : sizeof(double);
        const int limit = byte_limit(shared) / static_cast<int>(real_bytes_);
        count_ = shared.between(1, limit);
        if (function_ == Function::reduce_scatter_block) count_ = std::max(1, count_ / size_);
        root_ = shared.below(size_);
        Rng own(seed, static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(rank_) + 1);
        const int all = function_ == Function::reduce_scatter_block ? count_ * size_ : count_;
        send_ = real_bytes_ == sizeof(float) ? numbers<float>(own, all, product_) : numbers<double>(own, all, product_);
        std::snprintf(doing, sizeof doing, "seed %llu case %ld: %s of %d %s, rank %d of %d",
                      static_cast<unsigned long long>(seed), number, function_names[static_cast<int>(function_)],
                      count_, real_bytes_ == sizeof(float) ? "floats" : "doubles", rank_, size_);
    }

    std::uint64_t run(Outcome& outcome) {
        const std::vector<char> first = result(comm_, false);
        outcome.check(result(comm_, false) == first, "%s: other bits when called again", doing);
        outcome.check(result(dup_, false) == first, "%s: other bits on a duplicate", doing);
        const std::uint64_t digest = digest_of(first, 0xcbf29ce484222325U);
        if (function_ == Function::allreduce) {
            std::uint64_t roots = digest;
            PMPI_Bcast(&roots, 1, MPI_UINT64_T, 0, comm_);
            outcome.check(roots == digest, "%s: other bits than rank 0", doing);
        }
        compare_with_mpi(first, outcome);
        std::vector<std::uint64_t> all(static_cast<std::size_t>(size_));
        PMPI_Gather(&digest, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, 0, comm_);
        std::uint64_t sum = 0;
        for (const std::uint64_t one : all) sum = sum * 31 + one;
        return sum;
    }

  private:
    bool has_result() const {
        return !(function_ == Function::reduce && rank_ != root_) && !(function_ == Function::exscan && rank_ == 0);
    }

    std::vector<char> result(MPI_Comm comm, bool by_mpi) {
        std::vector<char> recv(static_cast<std::size_t>(count_) * real_bytes_);
        Call call{function_};
        call.sendbuf = send_.data();
        call.recvbuf = recv.data();
        call.recvcount = count_;
        call.recvtype = real_bytes_ == sizeof(float) ? MPI_FLOAT : MPI_DOUBLE;
        call.op = product_ ? MPI_PROD : MPI_SUM;
        call.root = root_;
        call.comm = comm;
        if (by_mpi)
            call_pmpi(call);
        else
            call_mpi(call);
        return recv;
    }

    /// Both are right to within what rounding may do; a lost or doubled operand is far out.
    void compare_with_mpi(const std::vector<char>& ours, Outcome& outcome) {
        const std::vector<char> theirs = result(comm_, true);
        std::vector<double> mine(send_.size() / real_bytes_), scale(static_cast<std::size_t>(count_));
        for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = std::abs(at(send_, i));
        if (function_ == Function::reduce_scatter_block)
            PMPI_Reduce_scatter_block(mine.data(), scale.data(), count_, MPI_DOUBLE, MPI_SUM, comm_);
        else
            PMPI_Allreduce(mine.data(), scale.data(), count_, MPI_DOUBLE, MPI_SUM, comm_);
        if (product_)
            for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = std::abs(at(theirs, i));
        if (!has_result()) return;
        const bool narrow = real_bytes_ == sizeof(float);
        const double off = narrow ? distance<float>(ours, theirs, scale) : distance<double>(ours, theirs, scale);
        const double unit = narrow ? 0x1p-23 : 0x1p-52;
        outcome.check(off <= 2 * size_ * unit, "%s: %g off", doing, off);
    }

    double at(const std::vector<char>& data, std::size_t i) const {
        if (real_bytes_ == sizeof(float)) {
            float value = 0;
            std::memcpy(&value, &data[i * sizeof value], sizeof value);
            return value;
        }
        double value = 0;
        std::memcpy(&value, &data[i * sizeof value], sizeof value);
        return value;
    }

    MPI_Comm comm_, dup_;
    Function function_ = Function::allreduce;
    bool product_ = false;
    std::size_t real_bytes_ = 8;
    int rank_ = 0, size_ = 0, count_ = 0, root_ = 0;
    std::vector<char> send_;
};

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    const auto seed = static_cast<std::uint64_t>(option(argc, argv, "--seed", 1));
    const long cases = option(argc, argv, "--cases", 100);
    const auto timeout_s = static_cast<unsigned>(option(argc, argv, "--timeout", 60));
    MPI_Comm dup = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    Outcome outcome;
    std::uint64_t digest = 0;
    for (long number = 0; number < cases; ++number) {
        watch(timeout_s);
        digest = digest * 31 + Case(seed, number, MPI_COMM_WORLD, dup).run(outcome);
    }
    MPI_Comm_free(&dup);
    if (world_rank == 0) std::printf("digest %016llx\n", static_cast<unsigned long long>(digest));
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
