// Nonblocking collectives, several at a time on several communicators, among ordinary messages in the same arrays of
// requests, completed in every way that there is, with other calls in between: the results must be those of PMPI_.
//
//     nonblocking [--seed N] [--first N] [--cases N] [--timeout SECONDS] [--free-communicator 0]

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "support/background.hpp"
#include "support/outcome.hpp"

using namespace test;

namespace {

struct Place {
    const char* name;
    MPI_Comm comm;
};

/// Messages around a ring, of which the receives and sends stand among the requests.
class Ring {
  public:
    Ring(Rng& shared, MPI_Comm comm, int tag) : comm_(comm), tag_(tag) {
        PMPI_Comm_rank(comm, &rank_);
        PMPI_Comm_size(comm, &size_);
        const std::size_t count = static_cast<std::size_t>(shared.one_in(5) ? 30000 : shared.between(0, 500));
        out_.assign(count, rank_ * 7919 + tag);
        in_.assign(count, -1);
    }
    void start(std::vector<MPI_Request>& requests) {
        const int count = static_cast<int>(in_.size());
        requests.resize(requests.size() + 2);
        MPI_Irecv(in_.data(), count, MPI_INT, (rank_ + size_ - 1) % size_, tag_, comm_, &requests[requests.size() - 2]);
        MPI_Isend(out_.data(), count, MPI_INT, (rank_ + 1) % size_, tag_, comm_, &requests.back());
    }
    bool right() const {
        const int from = (rank_ + size_ - 1) % size_;
        return std::all_of(in_.begin(), in_.end(), [&](int value) { return value == from * 7919 + tag_; });
    }

  private:
    MPI_Comm comm_;
    int tag_, rank_ = 0, size_ = 1;
    std::vector<int> out_, in_;
};

bool all_null(const std::vector<MPI_Request>& requests) {
    return std::all_of(requests.begin(), requests.end(), [](MPI_Request r) { return r == MPI_REQUEST_NULL; });
}

/// Completes all requests in one of the ways; null ones may be among them.
int complete(Rng& own, std::vector<MPI_Request>& requests) {
    const int count = static_cast<int>(requests.size());
    std::vector<MPI_Status> statuses(requests.size());
    std::vector<int> indices(requests.size());
    const bool ignore = own.one_in(2);
    MPI_Status* several = ignore ? MPI_STATUSES_IGNORE : statuses.data();
    MPI_Status* one = ignore ? MPI_STATUS_IGNORE : statuses.data();
    int flag = 0;
    int index = 0;
    int some = 0;
    int code = MPI_SUCCESS;
    switch (own.below(9)) {
        case 0:
            return MPI_Waitall(count, requests.data(), several);
        case 1:
            do code = MPI_Waitany(count, requests.data(), &index, one);
            while (code == MPI_SUCCESS && index != MPI_UNDEFINED);
            return code;
        case 2:
            do code = MPI_Waitsome(count, requests.data(), &some, indices.data(), several);
            while (code == MPI_SUCCESS && some != MPI_UNDEFINED);
            return code;
        case 3:
            while (code == MPI_SUCCESS && !flag) code = MPI_Testall(count, requests.data(), &flag, several);
            return code;
        case 4:
            do {
                code = MPI_Testany(count, requests.data(), &index, &flag, one);
                if (!flag) usleep(50);
            } while (code == MPI_SUCCESS && !(flag && index == MPI_UNDEFINED));
            return code;
        case 5:
            do code = MPI_Testsome(count, requests.data(), &some, indices.data(), several);
            while (code == MPI_SUCCESS && some != MPI_UNDEFINED);
            return code;
        case 6:
            std::reverse(requests.begin(), requests.end());
            for (MPI_Request& request : requests)
                if (code == MPI_SUCCESS) code = MPI_Wait(&request, one);
            return code;
        case 7:
            while (code == MPI_SUCCESS && !all_null(requests)) {
                MPI_Request& request = requests[static_cast<std::size_t>(own.below(count))];
                code = MPI_Test(&request, &flag, one);
            }
            return code;
        default:
            for (MPI_Request& request : requests) {
                for (flag = 0; code == MPI_SUCCESS && !flag;) code = MPI_Request_get_status(request, &flag, one);
                if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            return code;
    }
}

/// Something else that a program does meanwhile.
void meanwhile(Rng& shared, Rng& own, MPI_Comm comm, std::vector<MPI_Request>& requests, Outcome& outcome) {
    int rank = 0;
    int size = 1;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    const int to = (rank + 1) % size;
    const int from = (rank + size - 1) % size;
    int value = rank;
    int got = -1;
    int flag = 0;
    switch (shared.below(7)) {
        case 0:
            usleep(static_cast<unsigned>(own.below(2000)));
            break;
        case 1:
            MPI_Sendrecv(&value, 1, MPI_INT, to, 900, &got, 1, MPI_INT, from, 900, comm, MPI_STATUS_IGNORE);
            outcome.check(got == from, "MPI_Sendrecv meanwhile: %d, not %d", got, from);
            break;
        case 2: {
            std::vector<int> many(20000, rank);
            MPI_Sendrecv_replace(many.data(), 20000, MPI_INT, to, 901, from, 901, comm, MPI_STATUS_IGNORE);
            outcome.check(many.front() == from && many.back() == from, "MPI_Sendrecv_replace meanwhile: %d", many[0]);
            break;
        }
        case 3: {
            // Sent by turns, so that somebody waits for everyone.
            MPI_Status status;
            if (rank > 0) {
                MPI_Probe(rank - 1, 902, comm, &status);
                MPI_Recv(&got, 1, MPI_INT, rank - 1, 902, comm, MPI_STATUS_IGNORE);
                outcome.check(got == rank - 1 && status.MPI_SOURCE == rank - 1, "MPI_Recv meanwhile: %d", got);
            }
            if (rank + 1 < size) MPI_Ssend(&value, 1, MPI_INT, rank + 1, 902, comm);
            break;
        }
        case 4: {
            int sum = 0;
            MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
            outcome.check(sum == size * (size - 1) / 2, "MPI_Allreduce meanwhile: %d", sum);
            break;
        }
        case 5:
            if (!requests.empty()) {
                int index = 0;
                MPI_Testany(static_cast<int>(requests.size()), requests.data(), &index, &flag, MPI_STATUS_IGNORE);
            }
            break;
        default:
            break;
    }
}

void run_case(std::uint64_t seed, long number, const std::vector<Place>& places, Outcome& outcome) {
    Rng shared(seed, static_cast<std::uint64_t>(number), 0);
    Rng own(seed, static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(world_rank) + 1);
    const int many = shared.one_in(8) ? shared.between(10, 40) : shared.between(1, 5);
    std::vector<std::unique_ptr<Background>> operations;
    std::vector<std::unique_ptr<Ring>> rings;
    std::vector<MPI_Request> requests;
    std::string what;
    for (int i = 0; i < many; ++i) {
        const Place& place = places[static_cast<std::size_t>(shared.below(static_cast<int>(places.size())))];
        // Ranks of different communicators of one name come to the same numbers: nothing here depends on the rank.
        Rng of_operation(seed, static_cast<std::uint64_t>(number), 100 + static_cast<std::uint64_t>(i));
        operations.push_back(std::make_unique<Background>(of_operation, own, place.comm));
        what += (i ? "; " : "") + operations.back()->name() + " on " + place.name;
        std::snprintf(doing, sizeof doing, "case %ld: %s", number, what.c_str());
        requests.push_back(MPI_REQUEST_NULL);
        const int code = operations.back()->start(&requests.back());
        outcome.check(code == MPI_SUCCESS, "case %ld: starting %s: %d", number, operations.back()->name().c_str(),
                      code);
        if (shared.one_in(3)) operations.back()->free_type();
        if (shared.one_in(3)) {
            rings.push_back(std::make_unique<Ring>(shared, MPI_COMM_WORLD, i));
            rings.back()->start(requests);
        }
        if (own.one_in(6)) requests.push_back(MPI_REQUEST_NULL);
        if (shared.one_in(3)) meanwhile(shared, own, MPI_COMM_WORLD, requests, outcome);
    }
    // Arrays in any order.
    own.shuffle(requests);
    const int code = complete(own, requests);
    outcome.check(code == MPI_SUCCESS, "case %ld: completing: %d", number, code);
    outcome.check(all_null(requests), "case %ld: requests are left", number);
    for (const auto& ring : rings) outcome.check(ring->right(), "case %ld: a message in the ring", number);
    for (const auto& operation : operations) {
        std::snprintf(doing, sizeof doing, "case %ld by PMPI_: %s", number, operation->name().c_str());
        operation->expect();
        outcome.check(operation->right(), "case %ld: %s", number, operation->name().c_str());
    }
}

/// The first rank waits in MPI_Recv for a message that the last one sends once the broadcast is through; the relays in
/// between wait in other calls.
void crossed_waits(Outcome& outcome) {
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::snprintf(doing, sizeof doing, "crossed waits");
    std::vector<int> data(100000, rank == 0 ? 42 : 0);
    int token = rank;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(data.data(), static_cast<int>(data.size()), MPI_INT, 0, MPI_COMM_WORLD, &request);
    if (rank == size - 1) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int r = 0; r + 1 < size; ++r) MPI_Send(&token, 1, MPI_INT, r, 5, MPI_COMM_WORLD);
    } else {
        MPI_Status status;
        if (rank % 2 == 0) MPI_Probe(size - 1, 5, MPI_COMM_WORLD, &status);
        MPI_Recv(&token, 1, MPI_INT, size - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    outcome.check(data.front() == 42 && data.back() == 42 && token == size - 1, "a broadcast with crossed waits");
}

void add_up(void* in, void* inout, int* count, MPI_Datatype*) {
    for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

/// Operation and communicator are freed as soon as the collective is started. Open MPI 5.0.11 crashes when its own
/// collectives meet the latter.
void freed_at_once(Outcome& outcome, bool communicator) {
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::snprintf(doing, sizeof doing, "objects freed at once");
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int one = 1;
    int sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(add_up, 1, &op);
    std::vector<int> in(5000, 1);
    std::vector<int> out(5000, 0);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(in.data(), out.data(), 5000, MPI_INT, op, comm, &request);
    MPI_Op_free(&op);
    if (communicator) MPI_Comm_free(&comm);
    outcome.check(op == MPI_OP_NULL && (comm == MPI_COMM_NULL) == communicator, "freed handles are null");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (!communicator) MPI_Comm_free(&comm);
    outcome.check(out.front() == size && out.back() == size, "an operation freed at once: %d", out.front());
}

}  // namespace

int main(int argc, char** argv) {
    DriverOptions drivers(argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const auto seed = static_cast<std::uint64_t>(option(argc, argv, "--seed", 1));
    const long first = option(argc, argv, "--first", 0);
    const long cases = option(argc, argv, "--cases", 60);
    const auto timeout_s = static_cast<unsigned>(option(argc, argv, "--timeout", 60));
    watch(timeout_s);
    std::vector<Place> places{{"world", MPI_COMM_WORLD}};
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    places.push_back({"dup", comm});
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comm);
    places.push_back({"reversed", comm});
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &comm);
    places.push_back({"parity", comm});
    // A nonblocking call is served only where a blocking one was before.
    for (const Place& place : places) {
        int value = 0;
        MPI_Bcast(&value, 1, MPI_INT, 0, place.comm);
    }
    Outcome outcome;
    for (long number = first; number < first + cases; ++number) {
        watch(timeout_s);
        drivers.at(number);
        run_case(seed, number, places, outcome);
    }
    watch(timeout_s);
    crossed_waits(outcome);
    freed_at_once(outcome, option(argc, argv, "--free-communicator", 1) != 0);
    for (std::size_t i = 1; i < places.size(); ++i) MPI_Comm_free(&places[i].comm);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
