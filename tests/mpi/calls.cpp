// Calls of many kinds, counted by the program itself: what a recording must hold.
//
//     calls [--rounds N]
//
// Prints for each rank and function `expected RANK FUNCTION CALLS BYTES`; bytes are what the rank sends, or receives
// where it only does that.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

std::map<std::string, std::pair<long, long>> expected;

void count(const char* function, long bytes, long calls = 1) {
    expected[function].first += calls;
    expected[function].second += bytes;
}

void point_to_point(int rank, int ranks) {
    const int next = (rank + 1) % ranks;
    const int last = (rank + ranks - 1) % ranks;
    std::vector<char> out(1000, static_cast<char>(rank));
    std::vector<char> in(2000);
    MPI_Request requests[2];
    MPI_Irecv(in.data(), 2000, MPI_CHAR, last, 4, MPI_COMM_WORLD, &requests[0]);
    count("MPI_Irecv", 2000);
    MPI_Isend(out.data(), 1000, MPI_CHAR, next, 4, MPI_COMM_WORLD, &requests[1]);
    count("MPI_Isend", 1000);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    count("MPI_Waitall", 0);
    MPI_Sendrecv(out.data(), 10, MPI_CHAR, next, 5, in.data(), 10, MPI_CHAR, last, 5, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    count("MPI_Sendrecv", 10);
    if (rank % 2 == 0 && rank + 1 < ranks) {
        MPI_Send(out.data(), 3, MPI_CHAR, rank + 1, 6, MPI_COMM_WORLD);
        count("MPI_Send", 3);
    } else if (rank % 2 == 1) {
        MPI_Recv(in.data(), 3, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        count("MPI_Recv", 3);
    }
}

void collectives(MPI_Comm comm) {
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    count("MPI_Comm_rank", 0);
    count("MPI_Comm_size", 0);
    const auto p = static_cast<std::size_t>(ranks);
    std::vector<double> mine(5 * p, rank);
    std::vector<double> all(5 * p);
    MPI_Bcast(mine.data(), 5, MPI_DOUBLE, 0, comm);
    count("MPI_Bcast", 40);
    MPI_Allreduce(mine.data(), all.data(), 4, MPI_DOUBLE, MPI_SUM, comm);
    count("MPI_Allreduce", 32);
    MPI_Gather(rank == 0 ? MPI_IN_PLACE : mine.data(), 3, MPI_DOUBLE, all.data(), 3, MPI_DOUBLE, 0, comm);
    count("MPI_Gather", 24);
    MPI_Scatter(all.data(), 2, MPI_DOUBLE, rank == 0 ? MPI_IN_PLACE : mine.data(), 2, MPI_DOUBLE, 0, comm);
    count("MPI_Scatter", 16);
    std::vector<int> counts(p, 2);
    std::vector<int> displacements(p);
    for (std::size_t r = 0; r < p; ++r) displacements[r] = static_cast<int>(2 * r);
    MPI_Alltoallv(mine.data(), counts.data(), displacements.data(), MPI_DOUBLE, all.data(), counts.data(),
                  displacements.data(), MPI_DOUBLE, comm);
    count("MPI_Alltoallv", 16 * ranks);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(mine.data(), 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, comm, &request);
    count("MPI_Iallgather", 8);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    count("MPI_Wait", 0);
    MPI_Barrier(comm);
    count("MPI_Barrier", 0);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int rounds = argc > 2 && std::strcmp(argv[1], "--rounds") == 0 ? std::atoi(argv[2]) : 10;
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    count("MPI_Comm_rank", 0);
    count("MPI_Comm_size", 0);
    for (int round = 0; round < rounds; ++round) {
        point_to_point(rank, ranks);
        collectives(MPI_COMM_WORLD);
        MPI_Comm half = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        count("MPI_Comm_split", 0);
        collectives(half);
        MPI_Comm_free(&half);
        count("MPI_Comm_free", 0);
    }
    count("MPI_Finalize", 0);
    for (const auto& [function, sums] : expected)
        std::printf("expected %d %s %ld %ld\n", rank, function.c_str(), sums.first, sums.second);
    std::fflush(stdout);
    MPI_Finalize();
    return 0;
}
