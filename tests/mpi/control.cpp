// Algorithms forced while the program runs, through what the preload library exports: palmette_force and
// palmette_served_calls.
//
//     control [--preloaded 0|1]

#include <dlfcn.h>
#include <mpi.h>

#include <string>
#include <thread>
#include <vector>

#include "support/outcome.hpp"
#include "support/simple.hpp"

using namespace test;

namespace {

int (*force)(const char* function, const char* spec) = nullptr;
long long (*served_calls)(const char* function) = nullptr;
Outcome outcome;

/// Calls of allreduce that palmette serves among two on a new duplicate of the world; the results are checked.
long long served_on_duplicate(long salt, const char* what) {
    MPI_Comm dup = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    const long long before = served_calls("allreduce");
    int size = 0;
    MPI_Comm_size(dup, &size);
    for (int turn = 0; turn < 2; ++turn) {
        const long mine = salt + world_rank;
        long sum = -1;
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, dup);
        outcome.check(sum == size * salt + size * (size - 1L) / 2, "%s: the sum is %ld", what, sum);
    }
    const long long served = served_calls("allreduce") - before;
    MPI_Comm_free(&dup);
    return served;
}

void check_codes() {
    outcome.check(force("allreduce", "ring") == 0, "a specification");
    outcome.check(force("allreduce", "mpi") == 0, "mpi");
    outcome.check(force("allreduce", "") == 0, "back to the table");
    outcome.check(force("allreduce", nullptr) == 0, "nothing is back to the table too");
    outcome.check(force("iallreduce", "ring") == 1, "no such function");
    outcome.check(force(nullptr, "ring") == 1, "no function");
    outcome.check(force("allreduce", "no_such_algorithm") == 2, "no such algorithm");
    outcome.check(force("allreduce", "ring:radix=2") == 2, "a key that the algorithm doesn't have");
    outcome.check(force("allreduce", "recursive_multiplying:radix=many") == 2, "a value that is no number");
    outcome.check(served_calls("allreduces") == -1, "calls of no function");
}

void check_switching() {
    outcome.check(force("allreduce", "rabenseifner") == 0, "force one");
    MPI_Comm kept = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &kept);
    exercise(kept, 11, outcome, "the first algorithm");
    outcome.check(served_on_duplicate(1, "the first algorithm") == 2, "the first algorithm isn't served");
    outcome.check(force("allreduce", "mpi") == 0, "force the MPI's own");
    outcome.check(served_on_duplicate(2, "the MPI's own") == 0, "the MPI's own is served");
    outcome.check(force("allreduce", "no_such_algorithm") == 2, "a bad one changes nothing");
    outcome.check(served_on_duplicate(3, "the MPI's own still") == 0, "a bad specification has changed something");
    outcome.check(force("allreduce", "recursive_doubling") == 0, "force another one");
    outcome.check(served_on_duplicate(4, "the second algorithm") == 2, "the second algorithm isn't served");
    // A communicator keeps what it was made under, also for sizes that come up later.
    const long long before = served_calls("allreduce");
    std::vector<long> many(1000, 1), sums(1000, -1);
    MPI_Allreduce(many.data(), sums.data(), 1000, MPI_LONG, MPI_SUM, kept);
    outcome.check(sums[999] == sums[0] && sums[0] > 0, "the old communicator's sum");
    outcome.check(served_calls("allreduce") == before + 1, "the old communicator isn't served");
    MPI_Comm_free(&kept);
    outcome.check(force("allreduce", "") == 0, "back to the table");
}

/// Ranks that force different things get right results from the MPI, and don't hang.
void check_disagreement() {
    force("allreduce", world_rank == 0 ? "ring" : "recursive_doubling");
    outcome.check(served_on_duplicate(5, "ranks that disagree") == 0, "ranks that disagree are served");
    force("allreduce", "");
    served_on_duplicate(6, "ranks that agree again");
}

/// Threads force, each for a function of its own.
void check_threads() {
    const std::vector<std::pair<std::string, std::string>> jobs{
        {"gather", "linear"}, {"scatter", "k_nomial"}, {"bcast", "chain"}, {"reduce", "k_ary"}};
    std::vector<std::thread> threads;
    std::vector<int> failed(jobs.size(), 0);
    for (std::size_t i = 0; i < jobs.size(); ++i)
        threads.emplace_back([&, i] {
            for (int turn = 0; turn < 200; ++turn) {
                failed[i] += force(jobs[i].first.c_str(), turn % 2 ? jobs[i].second.c_str() : "") != 0;
                failed[i] += served_calls(jobs[i].first.c_str()) < 0;
            }
        });
    for (std::thread& thread : threads) thread.join();
    for (const int one : failed) outcome.check(one == 0, "%d calls failed in a thread", one);
    MPI_Comm dup = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    exercise(dup, 21, outcome, "what threads forced");
    MPI_Comm_free(&dup);
    for (const auto& [function, spec] : jobs) force(function.c_str(), "");
}

}  // namespace

int main(int argc, char** argv) {
    watch(120);
    force = reinterpret_cast<int (*)(const char*, const char*)>(dlsym(RTLD_DEFAULT, "palmette_force"));
    served_calls = reinterpret_cast<long long (*)(const char*)>(dlsym(RTLD_DEFAULT, "palmette_served_calls"));
    const bool preloaded = option(argc, argv, "--preloaded", 1) != 0;
    if (force) {
        outcome.check(force("allreduce", "ring") == 3, "before MPI_Init nothing is forced");
        outcome.check(served_calls("allreduce") == -1, "before MPI_Init nothing is counted");
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    outcome.check((force && served_calls) == preloaded, "what the preload exports is there: %d", force != nullptr);
    if (force && served_calls) {
        check_codes();
        check_switching();
        check_disagreement();
        check_threads();
    }
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    if (force && force("allreduce", "ring") != 3) return 1;
    return status;
}
