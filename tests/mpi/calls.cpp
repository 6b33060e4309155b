// Calls of many kinds, counted by the program itself: what a recording must hold.
//
//     calls [--rounds N]
//
// Prints for each rank and function `expected RANK FUNCTION CALLS BYTES`; bytes are what the rank sends, or receives
// where it only does that. FUNCTION/request stands for the requests that it made, once each has completed.
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
    count("MPI_Irecv/request", 2000);
    count("MPI_Isend/request", 1000);
    MPI_Sendrecv(out.data(), 10, MPI_CHAR, next, 5, in.data(), 10, MPI_CHAR, last, 5, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    count("MPI_Sendrecv", 10);
    count("MPI_Sendrecv/request", 10);
    if (rank % 2 == 0 && rank + 1 < ranks) {
        MPI_Send(out.data(), 3, MPI_CHAR, rank + 1, 6, MPI_COMM_WORLD);
        count("MPI_Send", 3);
    } else if (rank % 2 == 1) {
        MPI_Recv(in.data(), 3, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        count("MPI_Recv", 3);
    }
}

/// All ways in which a request completes; sources that only a status tells, which the program may ignore.
void requests_of_all_kinds(int rank, int ranks) {
    const int next = (rank + 1) % ranks;
    const int last = (rank + ranks - 1) % ranks;
    std::vector<char> out(64, static_cast<char>(rank));
    std::vector<std::vector<char>> in(8, std::vector<char>(64));
    std::vector<MPI_Request> requests(8, MPI_REQUEST_NULL);
    for (int i = 0; i < 4; ++i)
        MPI_Irecv(in[static_cast<std::size_t>(i)].data(), 64, MPI_CHAR, i % 2 == 0 ? MPI_ANY_SOURCE : last, 20 + i,
                  MPI_COMM_WORLD, &requests[static_cast<std::size_t>(i)]);
    count("MPI_Irecv", 4 * 64, 4);
    for (int i = 0; i < 4; ++i)
        MPI_Isend(out.data(), 8, MPI_CHAR, next, 20 + i, MPI_COMM_WORLD, &requests[4 + static_cast<std::size_t>(i)]);
    count("MPI_Isend", 4 * 8, 4);
    int index = 0;
    MPI_Waitany(8, requests.data(), &index, MPI_STATUS_IGNORE);
    count("MPI_Waitany", 0);
    int done = 0;
    std::vector<int> indices(8);
    MPI_Waitsome(8, requests.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
    count("MPI_Waitsome", 0);
    int flag = 0;
    MPI_Status status;
    MPI_Testany(8, requests.data(), &index, &flag, &status);
    MPI_Testsome(8, requests.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
    MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    MPI_Testall(8, requests.data(), &flag, MPI_STATUSES_IGNORE);
    for (const char* function : {"MPI_Testany", "MPI_Testsome", "MPI_Test", "MPI_Testall"}) count(function, 0);
    MPI_Waitall(8, requests.data(), MPI_STATUSES_IGNORE);
    count("MPI_Waitall", 0);
    count("MPI_Irecv/request", 4 * 64, 4);
    count("MPI_Isend/request", 4 * 8, 4);

    MPI_Request pair[2];
    MPI_Recv_init(in[0].data(), 64, MPI_CHAR, MPI_ANY_SOURCE, 30, MPI_COMM_WORLD, &pair[0]);
    count("MPI_Recv_init", 0);
    MPI_Send_init(out.data(), 5, MPI_CHAR, next, 30, MPI_COMM_WORLD, &pair[1]);
    count("MPI_Send_init", 0);
    for (int i = 0; i < 3; ++i) {
        MPI_Start(&pair[0]);
        MPI_Startall(1, &pair[1]);
        MPI_Wait(&pair[1], &status);
        MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
        count("MPI_Start", 0);
        count("MPI_Startall", 5);
        count("MPI_Wait", 0);
        count("MPI_Waitall", 0);
        count("MPI_Recv_init/request", 64);
        count("MPI_Send_init/request", 5);
    }
    MPI_Request_free(&pair[0]);
    MPI_Request_free(&pair[1]);
    count("MPI_Request_free", 0, 2);
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
    // Displacements in bytes; no block for itself, so that its type isn't looked at.
    std::vector<MPI_Datatype> types(p, MPI_DOUBLE);
    counts[static_cast<std::size_t>(rank)] = 0;
    types[static_cast<std::size_t>(rank)] = MPI_CHAR;
    for (int& displacement : displacements) displacement *= 8;
    MPI_Alltoallw(mine.data(), counts.data(), displacements.data(), types.data(), all.data(), counts.data(),
                  displacements.data(), types.data(), comm);
    count("MPI_Alltoallw", 16 * (ranks - 1));
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(mine.data(), 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, comm, &request);
    count("MPI_Iallgather", 8);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    count("MPI_Wait", 0);
    count("MPI_Iallgather/request", 8);
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
        requests_of_all_kinds(rank, ranks);
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
