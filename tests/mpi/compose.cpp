// Composed plans through the C functions: every composition by name, on several communicators and hierarchies, with
// uneven counts, many under way at once, must give what the MPI's collectives give; what can't be is an error on all
// ranks. Status 77 without palmette.
//
//     compose [--rounds N] [--every 1] [--timeout SECONDS]
//
// With --every, each composition runs on communicators of 1 rank to all, once with equal counts and once with counts of
// each rank's own.

#include "palmette/interpose/palmette.h"

#include <mpi.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "support/outcome.hpp"
#include "support/rng.hpp"

// The functions come with the preload; without it they are null.
#pragma weak palmette_error
#pragma weak palmette_composition_create
#pragma weak palmette_composition_named
#pragma weak palmette_composition_buffer
#pragma weak palmette_composition_multicast
#pragma weak palmette_composition_reduce
#pragma weak palmette_composition_fence
#pragma weak palmette_composition_free
#pragma weak palmette_plan_make
#pragma weak palmette_plan_buffer_bytes
#pragma weak palmette_plan_scratch_bytes
#pragma weak palmette_plan_free
#pragma weak palmette_bind
#pragma weak palmette_start
#pragma weak palmette_test
#pragma weak palmette_wait
#pragma weak palmette_run_free

using namespace test;

namespace {

const char* const names[] = {"gather",
                             "scatter",
                             "broadcast",
                             "broadcast_scatter_allgather",
                             "reduce",
                             "reduce_scatter_gather",
                             "alltoall",
                             "allgather",
                             "reduce_scatter",
                             "allreduce",
                             "allreduce_reduce_broadcast"};

/// x -> a x + b modulo 2^16, one map in each element: composition is associative and not commutative.
void compose_maps(void* in, void* inout, int* length, MPI_Datatype*) {
    const auto* left = static_cast<const std::uint32_t*>(in);
    auto* right = static_cast<std::uint32_t*>(inout);
    for (int i = 0; i < *length; ++i) {
        const std::uint32_t a = (left[i] >> 16) * (right[i] >> 16);
        const std::uint32_t b = (left[i] & 0xffff) * (right[i] >> 16) + (right[i] & 0xffff);
        right[i] = a << 16 | (b & 0xffff);
    }
}

struct Case {
    std::string name;
    std::string factoring;
    int root = 0;
    std::vector<std::int64_t> counts;
    MPI_Op op = MPI_SUM;
};

/// One composition with its data and what the MPI makes of it.
class Check {
  public:
    Check(const Case& what, MPI_Comm comm, Rng& own) : what_(what), comm_(comm) {
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_size(comm, &size_);
        fill(own);
        expect();
    }
    ~Check() {
        palmette_run_free(run_);
        palmette_plan_free(plan_);
        palmette_composition_free(composition_);
    }
    Check(const Check&) = delete;
    Check& operator=(const Check&) = delete;

    /// Collective. False where something went wrong, which is told.
    bool make(Outcome& outcome) {
        int code = palmette_composition_named(what_.name.c_str(), size_, what_.root, what_.counts.data(),
                                              static_cast<std::int64_t>(what_.counts.size()), MPI_UINT32_T, what_.op,
                                              &composition_);
        if (!outcome.check(code == MPI_SUCCESS, "%s: %s", text().c_str(), palmette_error())) return false;
        code = palmette_plan_make(composition_, comm_, what_.factoring.c_str(), &plan_);
        if (!outcome.check(code == MPI_SUCCESS, "%s: %s", text().c_str(), palmette_error())) return false;
        void* buffers[] = {first_.data(), second_.data(), part_.data()};
        const bool one = what_.name.rfind("broadcast", 0) == 0;
        int count = one ? 1 : 2;
        if (what_.name == "reduce_scatter_gather") {
            std::int64_t bytes = 0;
            palmette_plan_buffer_bytes(plan_, 2, &bytes);
            part_.resize(static_cast<std::size_t>(bytes) / 4 + 1);
            buffers[2] = part_.data();
            count = 3;
        }
        code = palmette_bind(plan_, buffers, count, &run_);
        return outcome.check(code == MPI_SUCCESS, "%s: %s", text().c_str(), palmette_error());
    }
    void start(Outcome& outcome) {
        if (!run_) return;
        if (what_.name.rfind("broadcast", 0) == 0) first_ = input_;
        outcome.check(palmette_start(run_) == MPI_SUCCESS, "%s: %s", text().c_str(), palmette_error());
    }
    bool test() {
        int done = 1;
        if (run_) palmette_test(run_, &done);
        return done != 0;
    }
    void wait_and_compare(Outcome& outcome) {
        if (!run_) return;
        outcome.check(palmette_wait(run_) == MPI_SUCCESS, "%s: %s", text().c_str(), palmette_error());
        const auto& found = what_.name.rfind("broadcast", 0) == 0 ? first_ : second_;
        outcome.check(found == expected_, "%s: another result than the MPI's", text().c_str());
        std::fill(second_.begin(), second_.end(), 0xffffffffU);
    }
    std::string text() const {
        return what_.name + ", " + what_.factoring + ", root " + std::to_string(what_.root) + " of " +
               std::to_string(size_);
    }

  private:
    int at(std::size_t i) const {
        return static_cast<int>(what_.counts.size() == 1 ? what_.counts[0] : what_.counts[i]);
    }
    /// As MPI's v forms want them; of `pairs`, row or column of this rank.
    void counts(std::vector<int>& list, std::vector<int>& offsets, bool pairs = false, bool column = false) const {
        const auto p = static_cast<std::size_t>(size_), self = static_cast<std::size_t>(rank_);
        list.clear(), offsets.clear();
        int end = 0;
        for (std::size_t i = 0; i < p; ++i) {
            list.push_back(at(pairs ? (column ? i * p + self : self * p + i) : i));
            offsets.push_back(end);
            end += list.back();
        }
    }
    bool is_vector() const {
        return what_.name.rfind("broadcast", 0) == 0 || what_.name.rfind("allreduce", 0) == 0 ||
               what_.name == "reduce" || what_.name == "reduce_scatter_gather";
    }
    std::size_t total(bool column = false) const {
        if (is_vector() && what_.counts.size() == 1) return static_cast<std::size_t>(what_.counts[0]);
        std::vector<int> list, offsets;
        counts(list, offsets, what_.name == "alltoall", column);
        return static_cast<std::size_t>(offsets.back() + list.back());
    }
    void fill(Rng& own) {
        const auto self = static_cast<std::size_t>(rank_);
        const auto mine = static_cast<std::size_t>(at(self));
        const bool root = rank_ == what_.root;
        std::size_t first = total(), second = total();
        if (what_.name == "gather") first = mine, second = root ? second : 0;
        if (what_.name == "scatter") first = root ? first : 0, second = mine;
        if (what_.name == "allgather") first = mine;
        if (what_.name == "reduce_scatter") second = mine;
        if (what_.name == "alltoall") second = total(true);
        if (what_.name == "reduce" || what_.name == "reduce_scatter_gather") second = root ? second : 0;
        if (what_.name == "allreduce_reduce_broadcast") second = total();
        // One more, so that the address of an empty one is there as well.
        first_.reserve(first + 1), second_.reserve(second + 1), part_.reserve(1);
        for (std::size_t i = 0; i < first; ++i) first_.push_back(static_cast<std::uint32_t>(own.next()));
        second_.assign(second, 0xffffffffU);
        input_ = first_;
        expected_.assign(second, 0xffffffffU);
    }
    void expect() {
        std::vector<int> list, offsets, other, other_offsets;
        const std::string& name = what_.name;
        const int n = static_cast<int>(first_.size());
        expected_.reserve(1);
        if (name != "alltoall") counts(list, offsets);
        const auto type = MPI_UINT32_T;
        if (name == "gather")
            MPI_Gatherv(first_.data(), n, type, expected_.data(), list.data(), offsets.data(), type, what_.root, comm_);
        else if (name == "scatter")
            MPI_Scatterv(first_.data(), list.data(), offsets.data(), type, expected_.data(),
                         static_cast<int>(expected_.size()), type, what_.root, comm_);
        else if (name == "allgather")
            MPI_Allgatherv(first_.data(), n, type, expected_.data(), list.data(), offsets.data(), type, comm_);
        else if (name == "alltoall") {
            counts(list, offsets, true, false);
            counts(other, other_offsets, true, true);
            MPI_Alltoallv(first_.data(), list.data(), offsets.data(), type, expected_.data(), other.data(),
                          other_offsets.data(), type, comm_);
        } else if (name == "reduce_scatter")
            MPI_Reduce_scatter(first_.data(), expected_.data(), list.data(), type, what_.op, comm_);
        else if (name.rfind("broadcast", 0) == 0) {
            expected_ = first_;
            MPI_Bcast(expected_.data(), n, type, what_.root, comm_);
        } else if (name.rfind("allreduce", 0) == 0)
            MPI_Allreduce(first_.data(), expected_.data(), n, type, what_.op, comm_);
        else
            MPI_Reduce(first_.data(), expected_.data(), n, type, what_.op, what_.root, comm_);
    }

    Case what_;
    MPI_Comm comm_;
    int rank_ = 0, size_ = 1;
    std::vector<std::uint32_t> first_, second_, part_, input_, expected_;
    palmette_composition* composition_ = nullptr;
    palmette_plan* plan_ = nullptr;
    palmette_run* run_ = nullptr;
};

std::string random_factoring(Rng& shared, int size) {
    std::string out;
    const char* const methods[] = {"direct", "tree.2",   "tree.3/1",  "ring",
                                   "ring/2", "direct/1", "ring@copy", "tree.2/1@copy"};
    if (shared.one_in(2)) {
        const int first = size > 1 ? static_cast<int>(shared.between(1, size - 1)) : 1;
        out =
            first < size ? "hierarchy=2:" + std::to_string(first) + "+" + std::to_string(size - first) : "hierarchy=1";
        out += " ";
    }
    out += std::string("method=") + methods[shared.between(0, 7)];
    if (shared.one_in(3)) out += " stripes=" + std::to_string(shared.between(2, 4));
    if (shared.one_in(3)) out += " pipeline=" + std::to_string(shared.between(2, 5));
    if (shared.one_in(3)) out += " landings=1";
    return out;
}

Case random_case(Rng& shared, int size, MPI_Op maps) {
    Case out;
    out.name = names[shared.between(0, 10)];
    out.factoring = random_factoring(shared, size);
    out.root = static_cast<int>(shared.between(0, size - 1));
    const int most = shared.one_in(5) ? 20000 : 40;
    const std::size_t length = shared.one_in(2)         ? 1
                               : out.name == "alltoall" ? static_cast<std::size_t>(size * size)
                                                        : static_cast<std::size_t>(size);
    for (std::size_t i = 0; i < length; ++i) out.counts.push_back(shared.between(0, most));
    if (shared.one_in(3)) out.op = maps;
    return out;
}

/// Every composition on the first 1, 2, ... ranks, at all of which the hierarchy, the root and the method are others.
void every_size(Outcome& outcome, MPI_Op maps, unsigned timeout_s) {
    int world = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    for (int size = 1; size <= world; ++size) {
        watch(timeout_s);
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, world_rank < size ? 0 : MPI_UNDEFINED, world_rank, &comm);
        if (comm == MPI_COMM_NULL) continue;
        Rng shared(13, static_cast<std::uint64_t>(size), 0);
        Rng own(14, static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(world_rank) + 1);
        for (std::size_t i = 0; i < std::size(names); ++i)
            for (const bool even : {true, false}) {
                Case one = random_case(shared, size, maps);
                one.name = names[i];
                one.root = static_cast<int>((3 * i + (even ? 1 : 2)) % static_cast<std::size_t>(size));
                one.counts.assign(even                     ? 1
                                  : one.name == "alltoall" ? static_cast<std::size_t>(size * size)
                                                           : static_cast<std::size_t>(size),
                                  7);
                for (std::size_t c = 0; c < one.counts.size() && !even; ++c)
                    one.counts[c] = static_cast<std::int64_t>(c * 5 % 11);
                Check check(one, comm, own);
                std::snprintf(doing, sizeof doing, "every size: %s", check.text().c_str());
                if (!check.make(outcome)) continue;
                check.start(outcome);
                check.wait_and_compare(outcome);
            }
        MPI_Comm_free(&comm);
    }
}

void errors(MPI_Comm comm, Outcome& outcome) {
    int rank = 0, size = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const std::int64_t count = 4;
    palmette_composition* made = nullptr;
    palmette_plan* plan = nullptr;
    outcome.check(palmette_composition_named("gathr", size, 0, &count, 1, MPI_INT, MPI_SUM, &made) != MPI_SUCCESS &&
                      std::string(palmette_error()).find("gathr") != std::string::npos,
                  "an unknown name: %s", palmette_error());
    outcome.check(palmette_composition_named("gather", size, size, &count, 1, MPI_INT, MPI_SUM, &made) != MPI_SUCCESS,
                  "a root that there isn't");
    palmette_composition_named("gather", size, 0, &count, 1, MPI_INT, MPI_SUM, &made);
    outcome.check(palmette_plan_make(made, comm, "method=star", &plan) != MPI_SUCCESS, "an unknown method");
    const std::string misfit = "hierarchy=" + std::to_string(size + 1);
    outcome.check(palmette_plan_make(made, comm, misfit.c_str(), &plan) != MPI_SUCCESS, "a hierarchy that doesn't fit");
    if (size > 1) {
        // What one rank understands otherwise is an error on all of them.
        outcome.check(palmette_plan_make(made, comm, rank == 0 ? "pipeline=2" : "", &plan) != MPI_SUCCESS,
                      "a factoring that differs");
        outcome.check(palmette_plan_make(rank == 1 ? nullptr : made, comm, "", &plan) != MPI_SUCCESS,
                      "no composition on one rank");
    }
    outcome.check(palmette_plan_make(made, comm, "", &plan) == MPI_SUCCESS, "%s", palmette_error());
    void* none[] = {nullptr, nullptr};
    palmette_run* run = nullptr;
    outcome.check(palmette_bind(plan, none, 2, &run) != MPI_SUCCESS, "a null buffer");
    outcome.check(palmette_bind(plan, none, 1, &run) != MPI_SUCCESS, "too few buffers");
    std::vector<int> in(4, rank), out(static_cast<std::size_t>(4 * size), -1);
    void* buffers[] = {in.data(), out.data()};
    outcome.check(palmette_bind(plan, buffers, 2, &run) == MPI_SUCCESS, "%s", palmette_error());
    // The plan and its composition may go before the run.
    palmette_plan_free(plan);
    palmette_composition_free(made);
    outcome.check(palmette_start(run) == MPI_SUCCESS && palmette_wait(run) == MPI_SUCCESS, "%s", palmette_error());
    if (rank == 0) outcome.check(out.back() == size - 1, "a gather after errors: %d", out.back());
    palmette_run_free(run);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    const auto timeout_s = static_cast<unsigned>(option(argc, argv, "--timeout", 90));
    if (!palmette_plan_make) {
        MPI_Finalize();
        return 77;
    }
    const long rounds = option(argc, argv, "--rounds", 10);
    Outcome outcome;
    MPI_Op maps = MPI_OP_NULL;
    MPI_Op_create(compose_maps, 0, &maps);
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &half);
    for (long round = 0; round < rounds; ++round) {
        watch(timeout_s);
        for (MPI_Comm comm : {MPI_COMM_WORLD, half}) {
            int size = 1;
            MPI_Comm_size(comm, &size);
            Rng shared(11, static_cast<std::uint64_t>(round), comm == half ? 1 : 0);
            Rng own(12, static_cast<std::uint64_t>(round), static_cast<std::uint64_t>(world_rank) + 1);
            std::vector<std::unique_ptr<Check>> all;
            const auto many = shared.between(1, 5);
            for (int i = 0; i < many; ++i) {
                const Case one = random_case(shared, size, maps);
                all.push_back(std::make_unique<Check>(one, comm, own));
                std::snprintf(doing, sizeof doing, "round %ld: %s", round, all.back()->text().c_str());
                all.back()->make(outcome);
            }
            // Several times, started and waited for in an order of each rank's own.
            for (int again = 0; again < 2; ++again) {
                std::vector<std::size_t> order(all.size());
                std::iota(order.begin(), order.end(), std::size_t{0});
                own.shuffle(order);
                for (const std::size_t i : order) all[i]->start(outcome);
                own.shuffle(order);
                if (own.one_in(2))
                    for (bool done = false; !done;) {
                        done = true;
                        for (const std::size_t i : order) done = all[i]->test() && done;
                    }
                for (const std::size_t i : order) all[i]->wait_and_compare(outcome);
            }
        }
    }
    if (option(argc, argv, "--every", 0) != 0) every_size(outcome, maps, timeout_s);
    watch(timeout_s);
    std::snprintf(doing, sizeof doing, "errors");
    errors(MPI_COMM_WORLD, outcome);
    MPI_Comm_free(&half);
    MPI_Op_free(&maps);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
