// Sends in every way that the matrix library counts, and prints what it must have counted: `expected FROM TO BYTES
// MESSAGES` by ranks of MPI_COMM_WORLD. Needs at least four ranks, an even number.
#include <mpi.h>

#include <array>
#include <string>
#include <vector>

#include "support/expected.hpp"

namespace {

int world_rank = 0;
int world_size = 1;
test::Expected expected;

void expect(int world, long long bytes, long long messages = 1) {
    expected[world].first += bytes * messages;
    expected[world].second += messages;
}

struct Ring {
    MPI_Comm comm;
    int next, previous, next_in_world;
};

std::vector<char> out(4096);
std::vector<char> in(4096);

template <class Send>
void with_receive(const Ring& ring, Send send) {
    MPI_Request request;
    MPI_Irecv(in.data(), static_cast<int>(in.size()), MPI_CHAR, ring.previous, 0, ring.comm, &request);
    // A ready send may start only after that.
    MPI_Barrier(MPI_COMM_WORLD);
    send();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void blocking(const Ring& r) {
    with_receive(r, [&] { MPI_Send(out.data(), 10, MPI_CHAR, r.next, 0, r.comm); });
    with_receive(r, [&] { MPI_Ssend(out.data(), 20, MPI_CHAR, r.next, 0, r.comm); });
    with_receive(r, [&] { MPI_Rsend(out.data(), 30, MPI_CHAR, r.next, 0, r.comm); });
    with_receive(r, [&] { MPI_Bsend(out.data(), 40, MPI_CHAR, r.next, 0, r.comm); });
    expect(r.next_in_world, 10 + 20 + 30 + 40);
    expected[r.next_in_world].second += 3;
    MPI_Sendrecv(out.data(), 5, MPI_INT, r.next, 0, in.data(), 5, MPI_INT, r.previous, 0, r.comm, MPI_STATUS_IGNORE);
    expect(r.next_in_world, 5 * static_cast<long long>(sizeof(int)));
    MPI_Sendrecv_replace(in.data(), 7, MPI_CHAR, r.next, 0, r.previous, 0, r.comm, MPI_STATUS_IGNORE);
    expect(r.next_in_world, 7);
    MPI_Send(out.data(), 10, MPI_CHAR, MPI_PROC_NULL, 0, r.comm);
}

void nonblocking(const Ring& r) {
    for (auto* const start : {&MPI_Isend, &MPI_Issend, &MPI_Ibsend, &MPI_Irsend}) {
        with_receive(r, [&] {
            MPI_Request request;
            (*start)(out.data(), 50, MPI_CHAR, r.next, 0, r.comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        });
        expect(r.next_in_world, 50);
    }
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
    MPI_Request request;
    MPI_Isendrecv(out.data(), 9, MPI_CHAR, r.next, 0, in.data(), 9, MPI_CHAR, r.previous, 0, r.comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(r.next_in_world, 9);
#endif
#if MPI_VERSION >= 4
    MPI_Sendrecv_c(out.data(), 11, MPI_CHAR, r.next, 0, in.data(), 11, MPI_CHAR, r.previous, 0, r.comm,
                   MPI_STATUS_IGNORE);
    expect(r.next_in_world, 11);
#endif
}

void persistent(const Ring& r) {
    std::array<MPI_Request, 3> requests;
    MPI_Send_init(out.data(), 100, MPI_CHAR, r.next, 0, r.comm, &requests[0]);
    MPI_Recv_init(in.data(), 100, MPI_CHAR, r.previous, 0, r.comm, &requests[1]);
    MPI_Ssend_init(out.data(), 100, MPI_CHAR, r.next, 0, r.comm, &requests[2]);
    for (int i = 0; i < 3; ++i) {
        MPI_Startall(2, requests.data());
        MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    }
    MPI_Start(&requests[1]);
    MPI_Start(&requests[0]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    expect(r.next_in_world, 100, 4);
    for (MPI_Request& request : requests) MPI_Request_free(&request);
    // Handles of freed requests come again: what these send is nobody's message.
    MPI_Recv_init(in.data(), 1, MPI_CHAR, MPI_PROC_NULL, 0, r.comm, &requests[0]);
    MPI_Start(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Request_free(&requests[0]);
}

void derived(const Ring& r) {
    MPI_Datatype type;
    MPI_Type_vector(3, 1, 5, MPI_INT, &type);
    MPI_Type_commit(&type);
    with_receive(r, [&] { MPI_Send(out.data(), 2, type, r.next, 0, r.comm); });
    expect(r.next_in_world, 6 * static_cast<long long>(sizeof(int)));
    MPI_Type_free(&type);
}

Ring ring_of(MPI_Comm comm) {
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    std::vector<int> worlds(static_cast<std::size_t>(size));
    MPI_Allgather(&world_rank, 1, MPI_INT, worlds.data(), 1, MPI_INT, comm);
    const int next = (rank + 1) % size;
    return {comm, next, (rank + size - 1) % size, worlds[static_cast<std::size_t>(next)]};
}

/// Between even and odd ranks: each sends to the one beside it.
void between(MPI_Comm half) {
    MPI_Comm comm;
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, world_rank % 2 == 0 ? world_size - 1 : world_size - 2, 0, &comm);
    // Halves have their ranks in falling order.
    const int peer = (world_size - 1 - world_rank) / 2;
    MPI_Sendrecv(out.data(), 33, MPI_CHAR, peer, 0, in.data(), 33, MPI_CHAR, peer, 0, comm, MPI_STATUS_IGNORE);
    expect(world_rank % 2 == 0 ? world_rank + 1 : world_rank - 1, 33);
    MPI_Comm_free(&comm);
}

/// Intel MPI 2021.18 hangs, by itself too, in nonblocking collectives over neighbours, now and then.
bool is_intel() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
    int length = 0;
    MPI_Get_library_version(version.data(), &length);
    return std::string(version.data()).find("Intel") != std::string::npos;
}

/// All collectives over neighbours on a communicator; `worlds` are those that get this rank's messages.
void over_neighbours(MPI_Comm comm, const std::vector<int>& worlds, int degree_in, int degree_out) {
    const auto all = [&](long long bytes) {
        for (const int world : worlds)
            if (world != MPI_PROC_NULL) expect(world, bytes);
    };
    const auto n = static_cast<std::size_t>(degree_in > degree_out ? degree_in : degree_out);
    std::vector<int> threes(n, 3), places(n);
    std::vector<MPI_Aint> offsets(n);
    std::vector<MPI_Datatype> types(n, MPI_CHAR);
    for (std::size_t i = 0; i < n; ++i) offsets[i] = places[i] = static_cast<int>(3 * i);
    MPI_Neighbor_allgather(out.data(), 3, MPI_CHAR, in.data(), 3, MPI_CHAR, comm);
    MPI_Neighbor_allgatherv(out.data(), 3, MPI_CHAR, in.data(), threes.data(), places.data(), MPI_CHAR, comm);
    MPI_Neighbor_alltoall(out.data(), 3, MPI_CHAR, in.data(), 3, MPI_CHAR, comm);
    MPI_Neighbor_alltoallv(out.data(), threes.data(), places.data(), MPI_CHAR, in.data(), threes.data(), places.data(),
                           MPI_CHAR, comm);
    MPI_Neighbor_alltoallw(out.data(), threes.data(), offsets.data(), types.data(), in.data(), threes.data(),
                           offsets.data(), types.data(), comm);
    for (int i = 0; i < 5; ++i) all(3);
    if (is_intel()) return;
    MPI_Request request;
    MPI_Ineighbor_alltoall(out.data(), 4, MPI_CHAR, in.data(), 4, MPI_CHAR, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    all(4);
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
    MPI_Neighbor_alltoall_init(out.data(), 6, MPI_CHAR, in.data(), 6, MPI_CHAR, comm, MPI_INFO_NULL, &request);
    for (int i = 0; i < 2; ++i) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        all(6);
    }
    MPI_Request_free(&request);
#endif
}

void neighbours() {
    const int extents[2] = {world_size / 2, 2};
    const int periodic[2] = {0, 1};
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, extents, periodic, 0, &grid);
    const int row = world_rank / 2;
    const int beside = row * 2 + (world_rank + 1) % 2;
    over_neighbours(grid,
                    {row > 0 ? world_rank - 2 : MPI_PROC_NULL, row + 1 < extents[0] ? world_rank + 2 : MPI_PROC_NULL,
                     beside, beside},
                    4, 4);
    MPI_Comm_free(&grid);
    const int to = (world_rank + 1) % world_size;
    const int from = (world_rank + world_size - 1) % world_size;
    MPI_Comm graph;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &graph);
    over_neighbours(graph, {to}, 1, 1);
    MPI_Comm_free(&graph);
}

void uncounted() {
    std::vector<int> sums(64);
    MPI_Allreduce(MPI_IN_PLACE, sums.data(), 64, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_CHAR, in.data(), 8, MPI_CHAR, MPI_COMM_WORLD);
    int window = 0;
    MPI_Win win;
    MPI_Win_create(&window, sizeof window, sizeof window, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&world_rank, 1, MPI_INT, (world_rank + 1) % world_size, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    std::vector<char> space(65536);
    MPI_Buffer_attach(space.data(), static_cast<int>(space.size()));
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &half);
    for (MPI_Comm comm : {MPI_COMM_WORLD, half}) {
        const Ring ring = ring_of(comm);
        blocking(ring);
        nonblocking(ring);
        persistent(ring);
        derived(ring);
    }
    between(half);
    neighbours();
    uncounted();
    MPI_Comm_free(&half);
    void* attached = nullptr;
    int size = 0;
    MPI_Buffer_detach(&attached, &size);
    test::print(expected, world_rank);
    MPI_Finalize();
    return 0;
}
