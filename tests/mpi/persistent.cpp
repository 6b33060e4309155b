// Persistent collectives: several, started again and again in an order of each rank's own, alone and among ordinary
// persistent and nonblocking requests; the results must be those of PMPI_. Status 77 where the MPI has none.
//
//     persistent [--seed N] [--rounds N] [--timeout SECONDS]

#include <mpi.h>

#include <memory>
#include <vector>

#include "support/background.hpp"
#include "support/outcome.hpp"

using namespace test;

namespace {

struct Started {
    std::unique_ptr<Background> operation;
    MPI_Request request = MPI_REQUEST_NULL;
};

/// A persistent receive from the left and a persistent send to the right.
class Ring {
  public:
    Ring() {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &size_);
        MPI_Recv_init(&in_, 1, MPI_INT, (rank_ + size_ - 1) % size_, 7, MPI_COMM_WORLD, &requests[0]);
        MPI_Send_init(&out_, 1, MPI_INT, (rank_ + 1) % size_, 7, MPI_COMM_WORLD, &requests[1]);
    }
    void fill(int round) { out_ = rank_ * 1000 + round; }
    bool right(int round) const { return in_ == (rank_ + size_ - 1) % size_ * 1000 + round; }
    void free() {
        for (MPI_Request& request : requests) MPI_Request_free(&request);
    }
    MPI_Request requests[2];

  private:
    int rank_ = 0, size_ = 1, in_ = -1, out_ = -1;
};

void run(std::uint64_t seed, int rounds, MPI_Comm comm, bool free_first, Outcome& outcome) {
    Rng shared(seed, 1, 0);
    Rng own(seed, 2, static_cast<std::uint64_t>(world_rank) + 1);
    std::vector<Started> all(static_cast<std::size_t>(shared.between(3, 9)));
    for (std::size_t i = 0; i < all.size(); ++i) {
        Rng of_operation(seed, 3, i);
        all[i].operation = std::make_unique<Background>(of_operation, own, comm);
        std::snprintf(doing, sizeof doing, "making %s", all[i].operation->name().c_str());
        const int code = all[i].operation->init(&all[i].request);
        outcome.check(code == MPI_SUCCESS, "making %s: %d", all[i].operation->name().c_str(), code);
        if (free_first) all[i].operation->free_type();
    }
    Ring ring;
    for (int round = 0; round < rounds; ++round) {
        std::snprintf(doing, sizeof doing, "round %d of %zu operations", round, all.size());
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < all.size(); ++i) order.push_back(i);
        if (round > 0)
            for (Started& one : all) one.operation->renew(own);
        own.shuffle(order);
        ring.fill(round);
        std::vector<MPI_Request> requests;
        if (own.one_in(2)) {
            for (const std::size_t i : order) MPI_Start(&all[i].request);
            MPI_Startall(2, ring.requests);
            for (const std::size_t i : order) requests.push_back(all[i].request);
            requests.insert(requests.end(), ring.requests, ring.requests + 2);
        } else {
            for (const std::size_t i : order) requests.push_back(all[i].request);
            requests.insert(requests.begin() + 1, ring.requests, ring.requests + 2);
            MPI_Startall(static_cast<int>(requests.size()), requests.data());
        }
        // A nonblocking one among them.
        int value = world_rank;
        int most = -1;
        requests.push_back(MPI_REQUEST_NULL);
        MPI_Iallreduce(&value, &most, 1, MPI_INT, MPI_MAX, comm, &requests.back());
        int code = MPI_SUCCESS;
        if (own.one_in(2)) {
            code = MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        } else {
            for (MPI_Request& request : requests)
                if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        outcome.check(code == MPI_SUCCESS, "round %d: completing: %d", round, code);
        outcome.check(most >= value, "round %d: a nonblocking one among them", round);
        outcome.check(ring.right(round), "round %d: a message in the ring", round);
        // Inactive ones are complete at once, and still there.
        int flag = 0;
        MPI_Test(&all[0].request, &flag, MPI_STATUS_IGNORE);
        outcome.check(flag == 1 && all[0].request != MPI_REQUEST_NULL, "round %d: an inactive request", round);
        for (Started& one : all) {
            std::snprintf(doing, sizeof doing, "round %d by PMPI_: %s", round, one.operation->name().c_str());
            one.operation->expect();
            outcome.check(one.operation->right(), "round %d: %s", round, one.operation->name().c_str());
        }
    }
    for (Started& one : all) MPI_Request_free(&one.request);
    outcome.check(all[0].request == MPI_REQUEST_NULL, "a freed request is null");
    ring.free();
}

}  // namespace

int main(int argc, char** argv) {
    DriverOptions drivers(argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
#ifndef TEST_HAS_PERSISTENT
    MPI_Finalize();
    return 77;
#endif
    const auto seed = static_cast<std::uint64_t>(option(argc, argv, "--seed", 1));
    const auto rounds = static_cast<int>(option(argc, argv, "--rounds", 6));
    const auto timeout_s = static_cast<unsigned>(option(argc, argv, "--timeout", 60));
    Outcome outcome;
    for (std::uint64_t set = 0; set < 6; ++set) {
        watch(timeout_s);
        drivers.at(static_cast<long>(set));
        MPI_Comm comm = MPI_COMM_WORLD;
        if (set % 3 == 2) MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comm);
        int value = 0;
        MPI_Bcast(&value, 1, MPI_INT, 0, comm);
        run(seed * 100 + set, rounds, comm, set % 2 == 1, outcome);
        if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
    }
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
