// Moves data in ways whose account is easily wrong, and keeps its own: persistent, partitioned, matched, cancelled,
// freed and failing messages, neighbourhoods, inter-communicators, in place, to nobody, in windows.
//
// Prints for each rank `expected RANK FUNCTION CALLS BYTES`, FUNCTION/request for what its requests moved, and
// `received RANK FROM BYTES MESSAGES`: bytes as sent, which tell a message's sender and place on its channel, on
// MPI_COMM_WORLD or a group of its ranks. Needs four ranks.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

int rank, ranks, next, last;
std::map<std::string, std::pair<long, long>> expected;
std::map<std::pair<int, long>, long> received;
std::vector<char> out(1 << 16), in(1 << 16);
const MPI_Comm world = MPI_COMM_WORLD;

void count(const char* function, long bytes, long calls = 1) {
    expected[function].first += calls;
    expected[function].second += bytes;
}
void get(int from, long bytes, long messages = 1) { received[{from, bytes}] += messages; }

bool is_intel() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
    int length = 0;
    MPI_Get_library_version(version.data(), &length);
    return std::string(version.data()).find("Intel") != std::string::npos;
}

void send(long bytes, int tag) {
    MPI_Send(out.data(), static_cast<int>(bytes), MPI_CHAR, next, tag, world);
    count("MPI_Send", bytes);
}
void receive(long bytes, int tag, int from = last) {
    MPI_Recv(in.data(), static_cast<int>(bytes), MPI_CHAR, from, tag, world, MPI_STATUS_IGNORE);
    count("MPI_Recv", bytes);
    get(last, bytes);
}
void wait(MPI_Request& request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

/// Starts requests that nobody completes, among others on the same channel.
void let_go() {
    MPI_Request request;
    for (const bool synchronous : {false, true}) {
        const int tag = synchronous ? 2 : 1;
        (synchronous ? MPI_Issend : MPI_Isend)(out.data(), 8, MPI_CHAR, next, tag, world, &request);
        count(synchronous ? "MPI_Issend" : "MPI_Isend", 8);
        count(synchronous ? "MPI_Issend/request" : "MPI_Isend/request", 8);
        MPI_Request_free(&request);
        MPI_Isend(out.data(), 9, MPI_CHAR, next, tag, world, &request);
        count("MPI_Isend", 9);
        wait(request);
        count("MPI_Isend/request", 9);
        receive(8, tag);
        receive(9, tag);
    }
    // A receive that is freed takes its place, too.
    static char kept[16];
    MPI_Irecv(kept, 10, MPI_CHAR, last, 3, world, &request);
    count("MPI_Irecv", 10);
    MPI_Request_free(&request);
    count("MPI_Irecv/request", 10);
    get(last, 10);
    MPI_Barrier(world);
    send(10, 3);
    send(11, 3);
    receive(11, 3);
    // Three that are never completed: static, for they are outstanding until MPI_Finalize.
    static MPI_Request forgotten[3];
    for (int i = 0; i < 3; ++i) MPI_Isend(out.data(), 16 + i, MPI_CHAR, next, 4, world, &forgotten[i]);
    count("MPI_Isend", 16 + 17 + 18, 3);
    count("MPI_Isend/request", 16 + 17 + 18, 3);
    for (int i = 0; i < 3; ++i) receive(16 + i, 4);
    send(20, 4);
    receive(20, 4);
    // Freed while it is under way.
    MPI_Send_init(out.data(), 12, MPI_CHAR, next, 5, world, &request);
    count("MPI_Send_init", 0);
    MPI_Start(&request);
    count("MPI_Start", 12);
    count("MPI_Send_init/request", 12);
    MPI_Request_free(&request);
    receive(12, 5);
}

void cancelled() {
    MPI_Request request;
    MPI_Irecv(in.data(), 100, MPI_CHAR, last, 6, world, &request);
    count("MPI_Irecv", 100);
    MPI_Cancel(&request);
    wait(request);
    count("MPI_Irecv/request", 100);
    MPI_Barrier(world);
    send(21, 6);
    receive(21, 6);
}

/// What is refused moves nothing; what is too long has come.
void failing() {
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Request requests[4];
    MPI_Send(out.data(), 30, MPI_CHAR, ranks + 5, 7, world);
    count("MPI_Send", 0);
    MPI_Isend(out.data(), -1, MPI_CHAR, next, 7, world, &requests[0]);
    count("MPI_Isend", 0);
    MPI_Bcast(out.data(), -1, MPI_CHAR, 0, world);
    count("MPI_Bcast", 0);
    MPI_Bcast(out.data(), 3, MPI_CHAR, 0, world);
    count("MPI_Bcast", 3);
    for (int i = 0; i < 4; ++i)
        MPI_Irecv(in.data() + 64 * i, 32, MPI_CHAR, i == 2 ? MPI_ANY_SOURCE : last, 7, world, &requests[i]);
    count("MPI_Irecv", 4 * 32, 4);
    count("MPI_Irecv/request", 4 * 32, 4);
    MPI_Barrier(world);
    for (int i = 0; i < 4; ++i) {
        send(i == 1 ? 512 : 24 + i, 7);
        get(last, i == 1 ? 512 : 24 + i);
    }
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (MPI_Request& request : requests)  // one that is pending still
        if (request != MPI_REQUEST_NULL) wait(request);
    MPI_Barrier(world);
    send(600, 8);
    MPI_Recv(in.data(), 40, MPI_CHAR, MPI_ANY_SOURCE, 8, world, MPI_STATUS_IGNORE);
    count("MPI_Recv", 40);
    get(last, 600);
    for (int i = 0; i < 3; ++i) {
        send(700 + i, 7);
        send(800 + i, 8);
    }
    for (int i = 0; i < 3; ++i) {
        receive(700 + i, 7);
        receive(800 + i, 8);
    }
    MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL);
}

/// The probe takes the first message, though its receive comes after that of the second.
void matched() {
    MPI_Message message;
    MPI_Request request;
    for (const int probed : std::array<int, 2>{last, MPI_ANY_SOURCE}) {
        send(41, 9);
        send(42, 9);
        MPI_Mprobe(probed, 9, world, &message, MPI_STATUS_IGNORE);
        receive(42, 9);
        MPI_Mrecv(in.data(), 41, MPI_CHAR, &message, MPI_STATUS_IGNORE);
        count("MPI_Mrecv", 41);
        count("MPI_Mrecv/request", 41);
        get(last, 41);
        send(43, 9);
        send(44, 9);
        for (int found = 0; !found; usleep(1000)) MPI_Improbe(probed, 9, world, &found, &message, MPI_STATUS_IGNORE);
        receive(44, 9);
        MPI_Imrecv(in.data(), 43, MPI_CHAR, &message, &request);
        count("MPI_Imrecv", 43);
        wait(request);
        count("MPI_Imrecv/request", 43);
        get(last, 43);
    }
    MPI_Mprobe(MPI_PROC_NULL, 0, world, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in.data(), 99, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    count("MPI_Mrecv", 0);
}

void to_nobody() {
    MPI_Request request;
    MPI_Send(out.data(), 50, MPI_CHAR, MPI_PROC_NULL, 0, world);
    count("MPI_Send", 0);
    MPI_Recv(in.data(), 50, MPI_CHAR, MPI_PROC_NULL, 0, world, MPI_STATUS_IGNORE);
    count("MPI_Recv", 0);
    MPI_Isend(out.data(), 50, MPI_CHAR, MPI_PROC_NULL, 0, world, &request);
    count("MPI_Isend", 0);
    count("MPI_Isend/request", 0);
    wait(request);
    const bool first = rank == 0;
    const bool end = rank == ranks - 1;
    MPI_Sendrecv(out.data(), 51, MPI_CHAR, end ? MPI_PROC_NULL : next, 10, in.data(), 51, MPI_CHAR,
                 first ? MPI_PROC_NULL : last, 10, world, MPI_STATUS_IGNORE);
    count("MPI_Sendrecv", end ? 0 : 51);
    count("MPI_Sendrecv/request", first ? 0 : 51);
    if (!first) get(last, 51);
}

void persistent() {
    MPI_Request both[2];
    MPI_Send_init(out.data(), 1000, MPI_CHAR, next, 11, world, &both[0]);
    MPI_Recv_init(in.data(), 1000, MPI_CHAR, last, 11, world, &both[1]);
    count("MPI_Send_init", 0);
    count("MPI_Recv_init", 0);
    for (int i = 0; i < 5; ++i) {
        MPI_Startall(2, both);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
    for (MPI_Request& request : both) {
        MPI_Start(&request);
        count("MPI_Start", &request == both ? 1000 : 0);
    }
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    count("MPI_Startall", 5 * 1000, 5);
    count("MPI_Send_init/request", 6 * 1000, 6);
    count("MPI_Recv_init/request", 6 * 1000, 6);
    get(last, 1000, 6);
    for (MPI_Request& request : both) MPI_Request_free(&request);
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
    MPI_Request request;
    MPI_Allreduce_init(out.data(), in.data(), 5, MPI_DOUBLE, MPI_SUM, world, MPI_INFO_NULL, &request);
    count("MPI_Allreduce_init", 0);
    for (int i = 0; i < 3; ++i) {
        MPI_Start(&request);
        wait(request);
    }
    count("MPI_Start", 3 * 40, 3);
    count("MPI_Allreduce_init/request", 3 * 40, 3);
    MPI_Request_free(&request);
    // A message of the same tag is another channel's.
    MPI_Psend_init(out.data(), 2, 30, MPI_CHAR, next, 12, world, MPI_INFO_NULL, &both[0]);
    MPI_Precv_init(in.data(), 2, 30, MPI_CHAR, last, 12, world, MPI_INFO_NULL, &both[1]);
    count("MPI_Psend_init", 0);
    count("MPI_Precv_init", 0);
    send(61, 12);
    for (int i = 0; i < 2; ++i) {
        MPI_Startall(2, both);
        MPI_Pready(1, both[0]);
        MPI_Pready(0, both[0]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
    receive(61, 12);
    count("MPI_Startall", 2 * 60, 2);
    count("MPI_Psend_init/request", 2 * 60, 2);
    count("MPI_Precv_init/request", 2 * 60, 2);
    get(last, 60, 2);
    for (MPI_Request& one : both) MPI_Request_free(&one);
#endif
}

/// `there`: which blocks go to somebody; `sources`: how many come.
void over_neighbours(MPI_Comm comm, const std::vector<bool>& there, std::size_t sources) {
    const std::size_t n = std::max(there.size(), sources);
    long several = 0;
    long sum = 0;
    std::vector<int> counts(n + 1), places(n + 1), alike(n + 1, 7);
    std::vector<MPI_Aint> at(n + 1);
    std::vector<MPI_Datatype> types(n + 1, MPI_CHAR);
    for (std::size_t i = 0; i < n; ++i) {
        counts[i] = 2;
        places[i] = static_cast<int>(200 * i);
        at[i] = static_cast<MPI_Aint>(200 * i);
        several += i < there.size() && there[i] ? 1 : 0;
        sum += i < there.size() && there[i] ? 2 : 0;
    }
    std::vector<char> to(200 * (n + 1)), from(200 * (n + 1));
    MPI_Neighbor_allgather(to.data(), 7, MPI_CHAR, from.data(), 7, MPI_CHAR, comm);
    count("MPI_Neighbor_allgather", 7 * several);
    MPI_Neighbor_allgatherv(to.data(), 7, MPI_CHAR, from.data(), alike.data(), places.data(), MPI_CHAR, comm);
    count("MPI_Neighbor_allgatherv", 7 * several);
    MPI_Neighbor_alltoall(to.data(), 3, MPI_INT, from.data(), 3, MPI_INT, comm);
    count("MPI_Neighbor_alltoall", 12 * several);
    MPI_Neighbor_alltoallv(to.data(), counts.data(), places.data(), MPI_CHAR, from.data(), counts.data(), places.data(),
                           MPI_CHAR, comm);
    count("MPI_Neighbor_alltoallv", sum);
    MPI_Neighbor_alltoallw(to.data(), counts.data(), at.data(), types.data(), from.data(), counts.data(), at.data(),
                           types.data(), comm);
    count("MPI_Neighbor_alltoallw", sum);
    if (is_intel()) return;  // which hangs in it now and then
    MPI_Request request;
    MPI_Ineighbor_alltoallv(to.data(), counts.data(), places.data(), MPI_CHAR, from.data(), counts.data(),
                            places.data(), MPI_CHAR, comm, &request);
    wait(request);
    count("MPI_Ineighbor_alltoallv", sum);
    count("MPI_Ineighbor_alltoallv/request", sum);
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
    MPI_Neighbor_alltoall_init(to.data(), 3, MPI_INT, from.data(), 3, MPI_INT, comm, MPI_INFO_NULL, &request);
    count("MPI_Neighbor_alltoall_init", 0);
    for (int i = 0; i < 2; ++i) {
        MPI_Start(&request);
        wait(request);
    }
    count("MPI_Start", 24 * several, 2);
    count("MPI_Neighbor_alltoall_init/request", 24 * several, 2);
    MPI_Request_free(&request);
#endif
}

void neighbours() {
    MPI_Comm comm;
    const int extents[2] = {ranks / 2, 2};
    const int periodic[2] = {0, 1};
    MPI_Cart_create(world, 2, extents, periodic, 0, &comm);
    over_neighbours(comm, {rank / 2 > 0, rank / 2 + 1 < extents[0], true, true}, 4);
    MPI_Comm_free(&comm);
    // Each to the next, the last to nobody; more than there are ranks: the next one twice as often as there are ranks.
    const bool sends = rank + 1 < ranks;
    const int times = 2 * ranks;
    std::vector<int> from(static_cast<std::size_t>(times), last);
    std::vector<int> to(static_cast<std::size_t>(times), next);
    MPI_Dist_graph_create_adjacent(world, rank > 0 ? times : 0, from.data(), MPI_UNWEIGHTED, sends ? times : 0,
                                   to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    const auto blocks = static_cast<std::size_t>(times);
    over_neighbours(comm, std::vector<bool>(sends ? blocks : 0, true), rank > 0 ? blocks : 0);
    MPI_Comm_free(&comm);
}

void in_place() {
    const auto p = static_cast<std::size_t>(ranks);
    std::vector<int> counts(p), places(p);
    int sum = 0;
    for (std::size_t r = 0; r < p; ++r) {
        counts[r] = static_cast<int>(r) + 1;
        places[r] = sum;
        sum += counts[r];
    }
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in.data(), counts.data(), places.data(), MPI_CHAR, world);
    count("MPI_Allgatherv", rank + 1);
    MPI_Gatherv(rank == 1 ? MPI_IN_PLACE : out.data(), rank + 1, MPI_CHAR, in.data(), counts.data(), places.data(),
                MPI_CHAR, 1, world);
    count("MPI_Gatherv", rank + 1);
    MPI_Scatterv(out.data(), counts.data(), places.data(), MPI_CHAR, rank == 1 ? MPI_IN_PLACE : in.data(), rank + 1,
                 MPI_CHAR, 1, world);
    count("MPI_Scatterv", rank + 1);
    std::vector<int> fours(p, 4);
    for (std::size_t r = 0; r < p; ++r) places[r] = static_cast<int>(4 * r);
    MPI_Alltoallv(MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL, in.data(), fours.data(), places.data(), MPI_CHAR,
                  world);
    count("MPI_Alltoallv", 4 * ranks);
}

/// Between even and odd ranks.
void between() {
    MPI_Comm half, comm;
    MPI_Comm_split(world, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, world, rank % 2 == 0 ? 1 : 0, 0, &comm);
    const bool sends = rank % 2 == 0;
    MPI_Bcast(out.data(), 70, MPI_CHAR, !sends ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, comm);
    count("MPI_Bcast", !sends || rank == 0 ? 70 : 0);
    MPI_Gather(out.data(), 6, MPI_CHAR, in.data(), 6, MPI_CHAR,
               !sends      ? 0
               : rank == 0 ? MPI_ROOT
                           : MPI_PROC_NULL,
               comm);
    count("MPI_Gather", sends ? 0 : 6);
    MPI_Alltoall(out.data(), 5, MPI_CHAR, in.data(), 5, MPI_CHAR, comm);
    int others = 0;
    MPI_Comm_remote_size(comm, &others);
    count("MPI_Alltoall", 5 * others);
    MPI_Reduce_scatter_block(out.data(), in.data(), 2, MPI_CHAR, MPI_MAX, comm);
    int own = 0;
    MPI_Comm_size(comm, &own);
    count("MPI_Reduce_scatter_block", 2 * own);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&half);
}

void in_a_window() {
    std::array<long, 2> window{};
    std::array<long, 2> mine{};
    MPI_Win win;
    MPI_Win_create(window.data(), sizeof window, 1, MPI_INFO_NULL, world, &win);
    MPI_Win_fence(0, win);
    MPI_Put(mine.data(), 1, MPI_LONG, next, 0, 1, MPI_LONG, win);
    MPI_Put(mine.data(), 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win);
    count("MPI_Put", 8, 2);
    MPI_Win_fence(0, win);
    MPI_Fetch_and_op(mine.data(), mine.data() + 1, MPI_LONG, next, 0, MPI_SUM, win);
    count("MPI_Fetch_and_op", 8);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    // Moves nothing.
    MPI_Reduce_local(mine.data(), window.data(), 2, MPI_LONG, MPI_SUM);
    count("MPI_Reduce_local", 0);
}

/// Buffered messages are waited for in flushes and detaches, of a communicator's and a session's buffer, too.
void buffers() {
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    static std::array<char, 1 << 16> space;
    const int size = static_cast<int>(space.size());
    void* at = nullptr;
    int bytes = 0;
    MPI_Request request;
    MPI_Comm comm;
    MPI_Comm_dup(world, &comm);
    MPI_Comm_attach_buffer(comm, space.data(), size);
    MPI_Bsend(out.data(), 13, MPI_CHAR, next, 0, comm);
    count("MPI_Bsend", 13);
    MPI_Recv(in.data(), 13, MPI_CHAR, last, 0, comm, MPI_STATUS_IGNORE);
    count("MPI_Recv", 13);
    get(last, 13);
    MPI_Comm_flush_buffer(comm);
    MPI_Comm_iflush_buffer(comm, &request);
    wait(request);
    MPI_Comm_detach_buffer(comm, &at, &bytes);
    for (const char* function : {"MPI_Comm_flush_buffer", "MPI_Comm_iflush_buffer", "MPI_Comm_iflush_buffer/request",
                                 "MPI_Comm_detach_buffer"})
        count(function, 0);
    MPI_Comm_free(&comm);
    MPI_Buffer_attach(space.data(), size);
    MPI_Buffer_flush();
    MPI_Buffer_iflush(&request);
    wait(request);
    MPI_Buffer_detach(&at, &bytes);
    for (const char* function :
         {"MPI_Buffer_flush", "MPI_Buffer_iflush", "MPI_Buffer_iflush/request", "MPI_Buffer_detach"})
        count(function, 0);
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Session_attach_buffer(session, space.data(), size);
    MPI_Session_flush_buffer(session);
    MPI_Session_iflush_buffer(session, &request);
    wait(request);
    MPI_Session_detach_buffer(session, &at, &bytes);
    for (const char* function : {"MPI_Session_flush_buffer", "MPI_Session_iflush_buffer",
                                 "MPI_Session_iflush_buffer/request", "MPI_Session_detach_buffer"})
        count(function, 0);
    MPI_Session_finalize(&session);
#endif
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
    next = (rank + 1) % ranks;
    last = (rank + ranks - 1) % ranks;
    let_go();
    cancelled();
    failing();
    matched();
    to_nobody();
    persistent();
    neighbours();
    in_place();
    between();
    in_a_window();
    buffers();
    std::string text;
    for (const auto& [function, sums] : expected)
        text += "expected " + std::to_string(rank) + " " + function + " " + std::to_string(sums.first) + " " +
                std::to_string(sums.second) + "\n";
    for (const auto& [message, number] : received)
        text += "received " + std::to_string(rank) + " " + std::to_string(message.first) + " " +
                std::to_string(message.second) + " " + std::to_string(number) + "\n";
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    MPI_Finalize();
    return 0;
}
