// Allreduces on one communicator after the other, each of which has groups of its own in aggregation daemons: the same
// bits on each, whatever happens to the daemons.
//
//     aggregated [--generations G] [--calls C] [--count N] [--seed S] [--nonblocking 1] [--longer-from R] [--mpis 1]
//         [--ring 1]
//     aggregated --random M [--first N] [--seed S]        both: [--timeout SECONDS]
//
// A generation is a duplicate of the world with C calls of N elements: sums of doubles that depend on the order, in
// place at each second call, and the least of integers at each third. With --longer-from the ranks from R on pass one
// element more, which is an error of the program. With --nonblocking, MPI_Iallreduce after a barrier; with --mpis, data
// are sent from memory of MPI_Alloc_mem, twice, which is freed after that and mostly allocated again for the next call.
// With --ring each rank waits after a call for a message of its neighbour's, sent after that one's call.
//
// --random: M allreduces with random arguments, on communicators that are made anew at each 50th; in the end as many
// files are open as after the first 50.

#include <mpi.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "support/communicators.hpp"
#include "support/outcome.hpp"
#include "support/reducing.hpp"

using namespace test;

namespace {

constexpr long cases_on_the_same = 50;

/// One call, the same in each generation.
class Sum {
  public:
    Sum(std::uint64_t seed, long call, int count, bool nonblocking, bool mpis)
        : in_place_(call % 2 == 1 && !mpis),
          least_(call % 3 == 2),
          nonblocking_(nonblocking),
          mpis_(mpis),
          count_(count) {
        Rng rng(seed, static_cast<std::uint64_t>(call), static_cast<std::uint64_t>(world_rank) + 1);
        for (int i = 0; i < count; ++i) {
            reals_.push_back(std::ldexp(small_number(rng), rng.between(-8, 8)));
            integers_.push_back(static_cast<int>(rng.next()));
        }
    }

    std::vector<char> result(MPI_Comm comm, bool by_mpi) const {
        return least_ ? result_of(integers_, MPI_INT, MPI_MIN, comm, by_mpi)
                      : result_of(reals_, MPI_DOUBLE, MPI_SUM, comm, by_mpi);
    }

    /// Whether the MPI's result is the same but for rounding.
    bool agrees(const std::vector<char>& ours, MPI_Comm comm) const {
        const std::vector<char> theirs = result(comm, true);
        if (least_) return ours == theirs;
        std::vector<double> scale(reals_.size());
        for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = std::abs(reals_[i]);
        PMPI_Allreduce(MPI_IN_PLACE, scale.data(), count_, MPI_DOUBLE, MPI_SUM, comm);
        int size = 0;
        MPI_Comm_size(comm, &size);
        for (std::size_t i = 0; i < scale.size(); ++i) {
            double one = 0, other = 0;
            std::memcpy(&one, &ours[i * sizeof one], sizeof one);
            std::memcpy(&other, &theirs[i * sizeof other], sizeof other);
            if (!(std::abs(one - other) <= 2 * size * 0x1p-52 * scale[i])) return false;
        }
        return true;
    }

  private:
    template <class T>
    std::vector<char> result_of(const std::vector<T>& data, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                bool by_mpi) const {
        std::vector<char> out(data.size() * sizeof(T));
        if (in_place_) std::memcpy(out.data(), data.data(), out.size());
        const void* in = in_place_ ? MPI_IN_PLACE : data.data();
        if (by_mpi) {
            PMPI_Allreduce(in, out.data(), count_, type, op, comm);
        } else if (nonblocking_) {
            MPI_Request request = MPI_REQUEST_NULL;
            MPI_Iallreduce(in, out.data(), count_, type, op, comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (mpis_) {
            void* memory = nullptr;
            MPI_Alloc_mem(static_cast<MPI_Aint>(out.size()), MPI_INFO_NULL, &memory);
            std::memcpy(memory, in, out.size());
            for (int i = 0; i < 2; ++i) MPI_Allreduce(memory, out.data(), count_, type, op, comm);
            MPI_Free_mem(memory);
        } else {
            MPI_Allreduce(in, out.data(), count_, type, op, comm);
        }
        return out;
    }

    bool in_place_, least_, nonblocking_, mpis_;
    int count_;
    std::vector<double> reals_;
    std::vector<int> integers_;
};

void run_generations(int argc, char** argv, std::uint64_t seed, Outcome& outcome) {
    const auto timeout_s = static_cast<unsigned>(option(argc, argv, "--timeout", 60));
    const bool nonblocking = option(argc, argv, "--nonblocking", 0) != 0;
    const bool mpis = option(argc, argv, "--mpis", 0) != 0;
    const bool ring = option(argc, argv, "--ring", 0) != 0;
    auto count = static_cast<int>(option(argc, argv, "--count", 1000));
    if (world_rank >= option(argc, argv, "--longer-from", world_rank + 1)) ++count;
    std::vector<Sum> calls;
    for (long call = 0; call < option(argc, argv, "--calls", 1); ++call)
        calls.emplace_back(seed, call, count, nonblocking, mpis);
    std::vector<std::vector<char>> first;
    for (long generation = 0; generation < option(argc, argv, "--generations", 3); ++generation) {
        watch(timeout_s);
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (nonblocking) MPI_Barrier(comm);
        for (std::size_t c = 0; c < calls.size(); ++c) {
            std::snprintf(doing, sizeof doing, "generation %ld, call %zu of %d elements", generation, c, count);
            const std::vector<char> result = calls[c].result(comm, false);
            if (ring) {
                int size = 0;
                MPI_Comm_size(MPI_COMM_WORLD, &size);
                MPI_Send(nullptr, 0, MPI_BYTE, (world_rank + 1) % size, 0, MPI_COMM_WORLD);
                MPI_Recv(nullptr, 0, MPI_BYTE, (world_rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            if (generation > 0) {
                outcome.check(result == first[c], "%s: other bits", doing);
                continue;
            }
            outcome.check(calls[c].agrees(result, comm), "%s: not what the MPI has", doing);
            first.push_back(result);
        }
        MPI_Comm_free(&comm);
    }
}

long open_files() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

void run_random(int argc, char** argv, std::uint64_t seed, long cases, Outcome& outcome) {
    const auto timeout_s = static_cast<unsigned>(option(argc, argv, "--timeout", 60));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    const std::vector<PredefinedType> types = predefined_types();
    Operations operations{predefined_operands(types), make_own_operations()};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    const long first = option(argc, argv, "--first", 0);
    Outcome rival("only the MPI is wrong");
    std::vector<Communicator> all;
    long files = 0;
    for (long number = first; number < first + cases; ++number) {
        watch(timeout_s);
        if ((number - first) % cases_on_the_same == 0) {
            free_communicators(all);
            all = make_communicators(seed + static_cast<std::uint64_t>(number));
            if (number - first == cases_on_the_same) files = open_files();
        }
        Rng choice(seed, static_cast<std::uint64_t>(number), 1U << 20);
        const Communicator& where = choice.pick(all);
        if (where.comm == MPI_COMM_NULL) continue;
        CaseContext context{seed, number, where.comm};
        MPI_Comm_rank(where.comm, &context.rank);
        MPI_Comm_size(where.comm, &context.size);
        context.plain = is_intel();
        std::snprintf(doing, sizeof doing, "seed %llu case %ld on %s (rank %d of %d)",
                      static_cast<unsigned long long>(seed), number, where.name.c_str(), context.rank, context.size);
        ReducingCase(context, Function::allreduce, operations).run(outcome, rival);
    }
    if (cases > cases_on_the_same) {
        free_communicators(all);
        all = make_communicators(seed);
        outcome.check(open_files() <= files, "%ld files are open, %ld after the first calls", open_files(), files);
    }
    free_communicators(all);
    free_own_operations(operations.own);
    rival.tell("in which only the MPI is wrong", MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    const auto seed = static_cast<std::uint64_t>(option(argc, argv, "--seed", 1));
    Outcome outcome;
    if (const long cases = option(argc, argv, "--random", 0); cases > 0)
        run_random(argc, argv, seed, cases, outcome);
    else
        run_generations(argc, argv, seed, outcome);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
