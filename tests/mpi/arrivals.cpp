// Messages to ranks that don't expect them, through the C functions: random sparse patterns, one right after the other
// with ranks that come late, on several communicators, beside other collectives that are under way; what is wrong on
// one rank is an error on all. Status 77 without palmette.
//
//     arrivals [--rounds N] [--timeout SECONDS]

#include "palmette/interpose/palmette.h"

#include <mpi.h>
#include <unistd.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "support/outcome.hpp"
#include "support/rng.hpp"

#pragma weak palmette_error
#pragma weak palmette_exchange
#pragma weak palmette_arrivals_size
#pragma weak palmette_arrivals_take
#pragma weak palmette_arrivals_free

using namespace test;

namespace {

/// What `from` sends to `to` in a round: -1 for nothing. The same on all ranks.
int length_of(int round, int from, int to) {
    Rng chance(21, static_cast<std::uint64_t>(round),
               static_cast<std::uint64_t>(from) * 1000 + static_cast<unsigned>(to));
    if (!chance.one_in(3)) return -1;
    return static_cast<int>(chance.one_in(6) ? chance.between(20000, 60000) : chance.between(0, 30));
}

int element(int round, int from, int to, int at) { return ((round * 31 + from) * 17 + to) * 13 + at; }

void exchange_once(MPI_Comm comm, int round, Outcome& outcome) {
    int rank = 0, size = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    std::vector<int> to, data;
    std::vector<std::int64_t> counts;
    for (int turn = 0; turn < size; ++turn) {
        const int other = (rank + turn) % size;
        const int length = length_of(round, rank, other);
        if (length < 0) continue;
        to.push_back(other);
        counts.push_back(length);
        for (int at = 0; at < length; ++at) data.push_back(element(round, rank, other, at));
    }
    palmette_arrivals* arrivals = nullptr;
    const int code =
        palmette_exchange(to.data(), counts.data(), static_cast<int>(to.size()), data.data(), MPI_INT, comm, &arrivals);
    if (!outcome.check(code == MPI_SUCCESS, "round %d of %d ranks: %s", round, size, palmette_error())) return;
    int senders = -1;
    std::int64_t elements = -1;
    palmette_arrivals_size(arrivals, &senders, &elements);
    std::vector<int> from(static_cast<std::size_t>(senders)), came(static_cast<std::size_t>(elements));
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(senders));
    palmette_arrivals_take(arrivals, from.data(), lengths.data(), came.data());
    palmette_arrivals_free(arrivals);
    std::vector<int> expected_from, expected;
    std::vector<std::int64_t> expected_lengths;
    for (int other = 0; other < size; ++other) {
        const int length = length_of(round, other, rank);
        if (length < 0) continue;
        expected_from.push_back(other);
        expected_lengths.push_back(length);
        for (int at = 0; at < length; ++at) expected.push_back(element(round, other, rank, at));
    }
    outcome.check(from == expected_from && lengths == expected_lengths && came == expected,
                  "round %d of %d ranks: %d senders and %lld elements instead of %zu and %zu", round, size, senders,
                  static_cast<long long>(elements), expected_from.size(), expected.size());
}

/// An error on all ranks where rank `who` passes what is wrong.
void errors(MPI_Comm comm, Outcome& outcome) {
    int rank = 0, size = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int who = size - 1;
    const int data[2] = {1, 2};
    palmette_arrivals* arrivals = nullptr;
    const auto refused = [&](std::vector<int> to, std::vector<std::int64_t> counts, const void* from, MPI_Datatype type,
                             const char* what) {
        if (rank != who) to = {0}, counts = {1}, from = data, type = MPI_INT;
        const int code =
            palmette_exchange(to.data(), counts.data(), static_cast<int>(to.size()), from, type, comm, &arrivals);
        const std::string said = palmette_error();
        outcome.check(code != MPI_SUCCESS && (rank != who || said.find(what) != std::string::npos), "%s: %s", what,
                      said.c_str());
    };
    refused({size}, {1}, data, MPI_INT, "the communicator has");
    refused({-1}, {1}, data, MPI_INT, "to[0] is -1");
    refused({0, 0}, {1, 1}, data, MPI_INT, "rank 0 is named twice");
    refused({0}, {-2}, data, MPI_INT, "counts[0] is -2");
    refused({0}, {1}, nullptr, MPI_INT, "data is null");
    MPI_Datatype pair = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    refused({0}, {1}, data, pair, "isn't predefined");
    MPI_Type_free(&pair);
    exchange_once(comm, 1000, outcome);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    if (!palmette_exchange) {
        MPI_Finalize();
        return 77;
    }
    const auto timeout_s = static_cast<unsigned>(option(argc, argv, "--timeout", 60));
    const long rounds = option(argc, argv, "--rounds", 20);
    Outcome outcome;
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &half);
    Rng own(22, 0, static_cast<std::uint64_t>(world_rank));
    for (int round = 0; round < rounds; ++round) {
        watch(timeout_s);
        std::snprintf(doing, sizeof doing, "round %d", round);
        if (own.one_in(4)) usleep(static_cast<unsigned>(own.between(100, 3000)));
        int one = 1, sum = 0, size = 1;
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        exchange_once(MPI_COMM_WORLD, round, outcome);
        exchange_once(half, round, outcome);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        outcome.check(sum == size, "an allreduce beside the exchange: %d", sum);
    }
    watch(timeout_s);
    std::snprintf(doing, sizeof doing, "errors");
    errors(MPI_COMM_WORLD, outcome);
    MPI_Comm_free(&half);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
