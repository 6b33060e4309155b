// Communicators of all kinds: made and freed by the thousand, many alive at once, reordered, inter-communicators, and
// receives of the user's that would take any message.
//
//     communicators [--cycles N] [--alive N] [--timeout SECONDS]

#include <mpi.h>

#include <vector>

#include "support/outcome.hpp"
#include "support/simple.hpp"

using namespace test;

namespace {

int world_size = 0;

/// A library that duplicates a communicator for each call: handles come back, and with them another order of ranks.
void make_and_free(long cycles, unsigned timeout_s, Outcome& outcome) {
    for (long i = 0; i < cycles; ++i) {
        watch(timeout_s);
        std::snprintf(doing, sizeof doing, "cycle %ld of making, using and freeing a communicator", i);
        MPI_Comm comm = MPI_COMM_NULL;
        const int forward = i % 2 == 0 ? world_rank : -world_rank;
        if (i % 3 == 0) {
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        } else {
            MPI_Comm_split(MPI_COMM_WORLD, i % 5 == 0 ? world_rank % 2 : 0, forward, &comm);
        }
        if (i % 50 == 0) {
            exercise(comm, i, outcome, doing);
        } else {
            int rank = 0;
            int size = 0;
            PMPI_Comm_rank(comm, &rank);
            PMPI_Comm_size(comm, &size);
            std::vector<int> ranks(static_cast<std::size_t>(size), -1);
            MPI_Allgather(&world_rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, comm);
            outcome.check(ranks[static_cast<std::size_t>(rank)] == world_rank, "%s", doing);
            int next = -1;
            MPI_Group group = MPI_GROUP_NULL;
            MPI_Group world = MPI_GROUP_NULL;
            const int last = size - 1;
            PMPI_Comm_group(comm, &group);
            PMPI_Comm_group(MPI_COMM_WORLD, &world);
            PMPI_Group_translate_ranks(group, 1, &last, world, &next);
            outcome.check(ranks[static_cast<std::size_t>(last)] == next, "%s: order of ranks", doing);
            PMPI_Group_free(&group);
            PMPI_Group_free(&world);
        }
        MPI_Comm_free(&comm);
    }
}

/// Most programs could have 2,000 communicators on MPICH; half of the ids for shadow ones would leave 1,000.
void many_alive(long wanted, unsigned timeout_s, Outcome& outcome) {
    std::vector<MPI_Comm> comms;
    for (long i = 0; i < wanted; ++i) {
        watch(timeout_s);
        std::snprintf(doing, sizeof doing, "communicator %ld of %ld alive at once", i, wanted);
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        const int code = MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
        if (!outcome.check(code == MPI_SUCCESS, "%s: MPI_Comm_dup failed with %d", doing, code)) break;
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
        comms.push_back(comm);
        exercise(comm, i, outcome, doing);
    }
    for (MPI_Comm comm : comms) exercise(comm, 7, outcome, "an old communicator among many");
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

void kinds(Outcome& outcome) {
    exercise(MPI_COMM_WORLD, 1, outcome, "world");
    exercise(MPI_COMM_SELF, 2, outcome, "self");

    MPI_Comm shared = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -world_rank, MPI_INFO_NULL, &shared);
    exercise(shared, 3, outcome, "split by shared memory, reversed");
    MPI_Comm of_shared = MPI_COMM_NULL;
    MPI_Comm_dup(shared, &of_shared);
    exercise(of_shared, 4, outcome, "a duplicate of one that was used");
    MPI_Comm_free(&shared);
    exercise(of_shared, 5, outcome, "a duplicate whose origin is freed");
    MPI_Comm_free(&of_shared);

    MPI_Comm cart = MPI_COMM_NULL;
    int dims[2] = {0, 0};
    const int periods[2] = {1, 0};
    MPI_Dims_create(world_size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &cart);
    exercise(cart, 6, outcome, "a grid");
    MPI_Comm row = MPI_COMM_NULL;
    const int remain[2] = {0, 1};
    MPI_Cart_sub(cart, remain, &row);
    exercise(row, 7, outcome, "a row of a grid");
    MPI_Comm_free(&row);
    MPI_Comm_free(&cart);

    MPI_Comm later = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_idup(MPI_COMM_WORLD, &later, &request);
    exercise(MPI_COMM_WORLD, 8, outcome, "world while a duplicate is under way");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    exercise(later, 9, outcome, "a duplicate made without blocking");
    MPI_Comm_free(&later);

    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group odd = MPI_GROUP_NULL;
    std::vector<int> members;
    for (int r = world_size - 1; r >= 0; r -= 2) members.push_back(r);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &odd);
    if ((world_size - 1 - world_rank) % 2 == 0) {
        MPI_Comm some = MPI_COMM_NULL;
        MPI_Comm_create_group(MPI_COMM_WORLD, odd, 17, &some);
        exercise(some, 10, outcome, "a group of every other rank");
        MPI_Comm_free(&some);
    }
    MPI_Group_free(&odd);
    MPI_Group_free(&all);
}

/// What moves data between two groups. `root`: MPI_ROOT at the one, MPI_PROC_NULL beside it, 0 in the group of odd
/// ranks.
void move_between(MPI_Comm inter, int side, int root, int remote, Outcome& outcome) {
    const auto n = static_cast<std::size_t>(remote);
    int told = root == MPI_ROOT ? 4711 : -1;
    MPI_Bcast(&told, 1, MPI_INT, root, inter);
    outcome.check(told == (side == 1 || root == MPI_ROOT ? 4711 : -1), "bcast between groups");
    MPI_Barrier(inter);
    std::vector<int> send, got(n, -1), ones(n, 1), items, bytes;
    const std::vector<MPI_Datatype> types(n, MPI_INT);
    for (int r = 0; r < remote; ++r) {
        send.push_back(1000 * world_rank + r);
        items.push_back(r);
        bytes.push_back(r * static_cast<int>(sizeof(int)));
    }
    int local_rank = 0;
    MPI_Comm_rank(inter, &local_rank);
    auto check = [&](const char* function) {
        bool right = true;
        for (int r = 0; r < remote; ++r)
            right = right && got[static_cast<std::size_t>(r)] == 1000 * (2 * r + 1 - side) + local_rank;
        outcome.check(right, "%s between groups", function);
        got.assign(n, -1);
    };
    MPI_Alltoall(send.data(), 1, MPI_INT, got.data(), 1, MPI_INT, inter);
    check("alltoall");
    MPI_Alltoallv(send.data(), ones.data(), items.data(), MPI_INT, got.data(), ones.data(), items.data(), MPI_INT,
                  inter);
    check("alltoallv");
    MPI_Alltoallw(send.data(), ones.data(), bytes.data(), types.data(), got.data(), ones.data(), bytes.data(),
                  types.data(), inter);
    check("alltoallw");
}

/// What reduces between two groups: each gets the other's sums.
void reduce_between(MPI_Comm inter, int side, int root, int remote, Outcome& outcome) {
    const int sum = remote * (remote - 1) + remote * (1 - side);  // of the other group's ranks in the world
    int result = -1;
    MPI_Reduce(&world_rank, &result, 1, MPI_INT, MPI_SUM, root, inter);
    if (root == MPI_ROOT) outcome.check(result == sum, "reduce between groups");
    MPI_Allreduce(&world_rank, &result, 1, MPI_INT, MPI_SUM, inter);
    outcome.check(result == sum, "allreduce between groups");
    int local = 0;
    MPI_Comm_size(inter, &local);
    // Both groups share out as much: each of mine gets `remote` items, each of theirs `local`.
    const auto n = static_cast<std::size_t>(local) * static_cast<std::size_t>(remote);
    const std::vector<int> mine(n, world_rank);
    std::vector<int> part(static_cast<std::size_t>(remote), -1);
    MPI_Reduce_scatter_block(mine.data(), part.data(), remote, MPI_INT, MPI_SUM, inter);
    outcome.check(part == std::vector<int>(part.size(), sum), "reduce_scatter_block between groups");
    const std::vector<int> counts(static_cast<std::size_t>(local), remote);
    part.assign(part.size(), -1);
    MPI_Reduce_scatter(mine.data(), part.data(), counts.data(), MPI_INT, MPI_SUM, inter);
    outcome.check(part == std::vector<int>(part.size(), sum), "reduce_scatter between groups");
}

/// Collectives between two groups belong to the MPI.
void between_groups(Outcome& outcome) {
    if (world_size < 2) return;
    const int side = world_rank % 2;
    MPI_Comm local = MPI_COMM_NULL;
    MPI_Comm inter = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, side, world_rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - side, 5, &inter);
    int remote = 0;
    MPI_Comm_remote_size(inter, &remote);
    std::vector<int> got(static_cast<std::size_t>(remote), -1);
    auto from_others = [&] {
        for (int r = 0; r < remote; ++r) {
            if (got[static_cast<std::size_t>(r)] != 2 * r + 1 - side) return false;
        }
        return true;
    };
    MPI_Allgather(&world_rank, 1, MPI_INT, got.data(), 1, MPI_INT, inter);
    outcome.check(from_others(), "allgather between groups");
    got.assign(got.size(), -1);
    std::vector<int> counts(got.size(), 1);
    std::vector<int> displs;
    for (int r = 0; r < remote; ++r) displs.push_back(r);
    MPI_Allgatherv(&world_rank, 1, MPI_INT, got.data(), counts.data(), displs.data(), MPI_INT, inter);
    outcome.check(from_others(), "allgatherv between groups");
    got.assign(got.size(), -1);
    const int root = side == 1 ? 0 : world_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Gather(&world_rank, 1, MPI_INT, got.data(), 1, MPI_INT, root, inter);
    if (root == MPI_ROOT) outcome.check(from_others(), "gather between groups");
    int back = -1;
    MPI_Scatter(got.data(), 1, MPI_INT, &back, 1, MPI_INT, root, inter);
    if (side == 1) outcome.check(back == world_rank, "scatter between groups");
    MPI_Gatherv(&world_rank, 1, MPI_INT, got.data(), counts.data(), displs.data(), MPI_INT, root, inter);
    if (root == MPI_ROOT) outcome.check(from_others(), "gatherv between groups");
    back = -1;
    MPI_Scatterv(got.data(), counts.data(), displs.data(), MPI_INT, &back, 1, MPI_INT, root, inter);
    if (side == 1) outcome.check(back == world_rank, "scatterv between groups");

    move_between(inter, side, root, remote, outcome);
    reduce_between(inter, side, root, remote, outcome);

    MPI_Comm merged = MPI_COMM_NULL;
    MPI_Intercomm_merge(inter, side, &merged);
    exercise(merged, 3, outcome, "two groups merged");
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
}

/// A receive from anybody with any tag, posted before a collective, must not get the collective's messages; nor may
/// one with a nonblocking collective in between.
void wildcards(Outcome& outcome) {
    long got = -1;
    MPI_Request receive = MPI_REQUEST_NULL;
    MPI_Irecv(&got, 1, MPI_LONG, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receive);
    exercise(MPI_COMM_WORLD, 11, outcome, "world with a receive for anything pending");
    std::vector<int> ranks(static_cast<std::size_t>(world_size), -1);
    MPI_Request gather = MPI_REQUEST_NULL;
    MPI_Iallgather(&world_rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, MPI_COMM_WORLD, &gather);
    exercise(MPI_COMM_WORLD, 12, outcome, "world with a nonblocking allgather pending");
    MPI_Wait(&gather, MPI_STATUS_IGNORE);
    for (int r = 0; r < world_size; ++r) outcome.check(ranks[static_cast<std::size_t>(r)] == r, "iallgather of %d", r);
    int done = 1;
    MPI_Test(&receive, &done, MPI_STATUS_IGNORE);
    PMPI_Barrier(MPI_COMM_WORLD);  // nobody sends before everybody has looked
    outcome.check(done == 0, "a receive for anything took a message of a collective: %ld", got);
    const long sent = 4711 + world_rank;
    if (done == 0) {
        MPI_Send(&sent, 1, MPI_LONG, (world_rank + 1) % world_size, 3, MPI_COMM_WORLD);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
    }
    outcome.check(got == 4711 + (world_rank + world_size - 1) % world_size, "a message of the user's: %ld", got);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    const auto timeout_s = static_cast<unsigned>(option(argc, argv, "--timeout", 60));
    Outcome outcome;
    watch(timeout_s);
    std::snprintf(doing, sizeof doing, "communicators of all kinds");
    kinds(outcome);
    std::snprintf(doing, sizeof doing, "inter-communicators");
    between_groups(outcome);
    std::snprintf(doing, sizeof doing, "receives for anything");
    if (world_size > 1) wildcards(outcome);
    make_and_free(option(argc, argv, "--cycles", 3000), timeout_s, outcome);
    many_alive(option(argc, argv, "--alive", 100), timeout_s, outcome);
    std::snprintf(doing, sizeof doing, "MPI_Finalize");
    watch(timeout_s);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
