// Communicators that are freed while collectives of theirs are under way: nobody waits for others in MPI_Comm_free, and
// the collectives come to their end.
//
//     freed_communicators [--rounds N]
//
// N communicators with a collective each are made and freed like that, one after the other. Status 0 also where the MPI
// has no persistent collectives.

#include <mpi.h>

#include <vector>

#include "support/background.hpp"
#include "support/outcome.hpp"

using namespace test;

namespace {

constexpr int count = 3000;
int rank_of_world = 0, size_of_world = 1;

/// A sum over the world's ranks, started on a communicator of theirs.
class Sum {
  public:
    Sum() : in_(count), out_(count, -1) {
        for (int i = 0; i < count; ++i) in_[static_cast<std::size_t>(i)] = rank_of_world + i;
    }
    void start(MPI_Comm comm) { MPI_Iallreduce(in_.data(), out_.data(), count, MPI_INT, MPI_SUM, comm, &request_); }
    void wait() { MPI_Wait(&request_, MPI_STATUS_IGNORE); }
    MPI_Request* request() { return &request_; }
    const int* in() const { return in_.data(); }
    int* out() { return out_.data(); }
    bool right() {
        bool same = true;
        for (int i = 0; i < count; ++i)
            same = same &&
                   out_[static_cast<std::size_t>(i)] == size_of_world * i + size_of_world * (size_of_world - 1) / 2;
        out_.assign(out_.size(), -1);
        return same;
    }

  private:
    std::vector<int> in_, out_;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

/// One on which palmette serves nonblocking calls.
MPI_Comm made(MPI_Comm from = MPI_COMM_WORLD) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(from, &comm);
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    return comm;
}

void say(const char* what) { std::snprintf(doing, sizeof doing, "%s", what); }

/// The first rank frees before the others have started: they wait for a message that comes later.
void before_others_have_started(Outcome& outcome) {
    say("freed before others have started");
    MPI_Comm comm = made();
    Sum sum;
    char token = 0;
    if (rank_of_world == 0) {
        sum.start(comm);
        MPI_Comm_free(&comm);
        for (int r = 1; r < size_of_world; ++r) MPI_Send(&token, 1, MPI_CHAR, r, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&token, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum.start(comm);
        MPI_Comm_free(&comm);
    }
    outcome.check(comm == MPI_COMM_NULL, "the handle is null");
    sum.wait();
    outcome.check(sum.right(), "%s", doing);
}

/// Two, in another order on each second rank; both are started before one is freed, or one after the other.
void in_any_order(Outcome& outcome, bool one_by_one) {
    say(one_by_one ? "started and freed one by one, in any order" : "freed in any order");
    MPI_Comm comms[] = {made(), made()};
    Sum sums[2];
    const int first = rank_of_world % 2;
    for (const int which : {first, 1 - first}) {
        sums[which].start(comms[which]);
        if (one_by_one) MPI_Comm_free(&comms[which]);
    }
    for (const int which : {1 - first, first})
        if (!one_by_one) MPI_Comm_free(&comms[which]);
    for (Sum& sum : sums) sum.wait();
    for (Sum& sum : sums) outcome.check(sum.right(), "%s", doing);
}

void idle_in_any_order(Outcome& outcome) {
    say("idle ones freed in any order");
    MPI_Comm comms[] = {made(), made()};
    const int first = rank_of_world % 2;
    MPI_Comm_free(&comms[first]);
    MPI_Comm_free(&comms[1 - first]);
    outcome.check(comms[0] == MPI_COMM_NULL && comms[1] == MPI_COMM_NULL, "%s", doing);
}

/// The MPI may give the freed one's handle to the next.
void another_in_its_place(Outcome& outcome) {
    say("another one in its place");
    MPI_Comm comm = made();
    Sum old, fresh;
    old.start(comm);
    MPI_Comm_free(&comm);
    comm = made();
    fresh.start(comm);
    if (rank_of_world == 0) MPI_Barrier(comm);
    fresh.wait();
    if (rank_of_world != 0) MPI_Barrier(comm);
    outcome.check(fresh.right(), "%s: the fresh one", doing);
    MPI_Comm_free(&comm);
    old.wait();
    outcome.check(old.right(), "%s: the old one", doing);
}

#ifdef TEST_HAS_PERSISTENT
void persistent_on_a_freed_one(Outcome& outcome) {
    say("a persistent one on a freed communicator");
    MPI_Comm comm = made();
    Sum sum;
    MPI_Allreduce_init(sum.in(), sum.out(), count, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, sum.request());
    MPI_Comm_free(&comm);
    for (int round = 0; round < 3; ++round) {
        MPI_Start(sum.request());
        MPI_Wait(sum.request(), MPI_STATUS_IGNORE);
        outcome.check(sum.right(), "%s, round %d", doing, round);
    }
    MPI_Request_free(sum.request());
}
#endif

void again_and_again(Outcome& outcome, long rounds) {
    say("again and again");
    bool right = true;
    for (long round = 0; round < rounds; ++round) {
        MPI_Comm comm = made();
        Sum sum;
        sum.start(comm);
        MPI_Comm_free(&comm);
        sum.wait();
        right = right && sum.right();
    }
    outcome.check(right, "%s", doing);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_of_world);
    MPI_Comm_size(MPI_COMM_WORLD, &size_of_world);
    world_rank = rank_of_world;
    watch(60);
    Outcome outcome;
    before_others_have_started(outcome);
    in_any_order(outcome, false);
    in_any_order(outcome, true);
    idle_in_any_order(outcome);
    another_in_its_place(outcome);
#ifdef TEST_HAS_PERSISTENT
    persistent_on_a_freed_one(outcome);
#endif
    again_and_again(outcome, option(argc, argv, "--rounds", 3));
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
