// MPI_THREAD_MULTIPLE: threads that run collectives at the same time, each on communicators of its own, which it also
// duplicates and frees.
//
//     threads [--threads N] [--rounds N] [--timeout SECONDS]
// Status 77 when the MPI gives less than MPI_THREAD_MULTIPLE.

#include <mpi.h>

#include <thread>
#include <vector>

#include "support/outcome.hpp"
#include "support/simple.hpp"

using namespace test;

namespace {

void work(MPI_Comm comm, int thread, long rounds, Outcome& outcome) {
    for (long round = 0; round < rounds; ++round) {
        exercise(comm, round * 7 + thread, outcome, "a thread's communicator");
        if (round % 4 != 0) continue;
        MPI_Comm dup = MPI_COMM_NULL;
        MPI_Comm_dup(comm, &dup);
        exercise(dup, round + thread, outcome, "a duplicate that a thread made");
        MPI_Comm_free(&dup);
    }
}

}  // namespace

int main(int argc, char** argv) {
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    if (provided < MPI_THREAD_MULTIPLE) {
        if (world_rank == 0) std::printf("MPI_THREAD_MULTIPLE is not provided\n");
        MPI_Finalize();
        return 77;
    }
    const auto threads = static_cast<std::size_t>(option(argc, argv, "--threads", 4));
    const long rounds = option(argc, argv, "--rounds", 40);
    watch(static_cast<unsigned>(option(argc, argv, "--timeout", 60)));
    std::snprintf(doing, sizeof doing, "%zu threads, %ld rounds", threads, rounds);

    std::vector<MPI_Comm> comms(threads, MPI_COMM_NULL);
    for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    std::vector<Outcome> outcomes(threads);
    std::vector<std::thread> running;
    for (std::size_t i = 0; i < threads; ++i) {
        running.emplace_back(work, comms[i], static_cast<int>(i), rounds, std::ref(outcomes[i]));
    }
    for (std::thread& thread : running) thread.join();
    Outcome outcome;
    for (const Outcome& one : outcomes) outcome.add(one);
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
