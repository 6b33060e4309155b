// Exchanges blocks in every way that the matrix library counts, on rows and columns of a grid and between groups, and
// prints what it must have counted: `expected FROM TO BYTES CALLS` by ranks of MPI_COMM_WORLD. Needs at least four
// ranks, an even number.
#include <mpi.h>

#include <vector>

#include "support/expected.hpp"

namespace {

int world_rank = 0;
int world_size = 1;
test::Expected expected;
std::vector<char> out(4096);
std::vector<char> in(4096);

struct Members {
    MPI_Comm comm;
    int rank;
    std::vector<int> worlds;  // of those that get blocks
};

Members members_of(MPI_Comm comm) {
    Members found{comm, 0, {}};
    int size = 1;
    MPI_Comm_rank(comm, &found.rank);
    MPI_Comm_size(comm, &size);
    found.worlds.resize(static_cast<std::size_t>(size));
    MPI_Allgather(&world_rank, 1, MPI_INT, found.worlds.data(), 1, MPI_INT, comm);
    return found;
}

void expect(int world, long long bytes) {
    if (world == world_rank || bytes == 0) return;
    expected[world].first += bytes;
    ++expected[world].second;
}

void expect_each(const Members& members, long long bytes) {
    for (const int world : members.worlds) expect(world, bytes);
}

/// Arguments of alltoallv and w: none to three elements, as many in the other direction, so that it works in place.
struct Lists {
    std::vector<int> counts, elements, bytes;
    std::vector<MPI_Count> large_counts;
    std::vector<MPI_Aint> large_elements, large_bytes;
    std::vector<MPI_Datatype> types;

    explicit Lists(const Members& members) {
        for (std::size_t i = 0; i < members.worlds.size(); ++i) {
            const int sum = members.rank + static_cast<int>(i);
            counts.push_back(sum % 4);
            elements.push_back(8 * static_cast<int>(i));
            bytes.push_back(16 * static_cast<int>(i));
            types.push_back(sum % 2 == 0 ? MPI_INT : MPI_SHORT);
        }
        large_counts.assign(counts.begin(), counts.end());
        large_elements.assign(elements.begin(), elements.end());
        large_bytes.assign(bytes.begin(), bytes.end());
    }
    void expect_v(const Members& members) const {
        for (std::size_t i = 0; i < counts.size(); ++i) expect(members.worlds[i], 2LL * counts[i]);
    }
    void expect_w(const Members& members) const {
        for (std::size_t i = 0; i < counts.size(); ++i)
            expect(members.worlds[i], (types[i] == MPI_INT ? 4LL : 2LL) * counts[i]);
    }
};

void started(MPI_Request& request, int times) {
    for (int i = 0; i < times; ++i) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}

void alike(const Members& m) {
    MPI_Request request;
    MPI_Alltoall(out.data(), 3, MPI_SHORT, in.data(), 3, MPI_SHORT, m.comm);
    expect_each(m, 6);
    MPI_Alltoall(out.data(), 0, MPI_SHORT, in.data(), 0, MPI_SHORT, m.comm);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in.data(), 5, MPI_INT, m.comm);
    expect_each(m, 20);
    MPI_Ialltoall(out.data(), 7, MPI_CHAR, in.data(), 7, MPI_CHAR, m.comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_each(m, 7);
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
    MPI_Alltoall_init(out.data(), 9, MPI_CHAR, in.data(), 9, MPI_CHAR, m.comm, MPI_INFO_NULL, &request);
    started(request, 2);
    expect_each(m, 9);
    expect_each(m, 9);
    // Never started, so never sent.
    MPI_Alltoall_init(out.data(), 9, MPI_CHAR, in.data(), 9, MPI_CHAR, m.comm, MPI_INFO_NULL, &request);
    MPI_Request_free(&request);
#endif
#if MPI_VERSION >= 4
    MPI_Alltoall_c(out.data(), 11, MPI_CHAR, in.data(), 11, MPI_CHAR, m.comm);
    expect_each(m, 11);
#endif
}

void with_counts(const Members& m) {
    const Lists l(m);
    const int* const counts = l.counts.data();
    const int* const at = l.elements.data();
    MPI_Request request;
    MPI_Alltoallv(out.data(), counts, at, MPI_SHORT, in.data(), counts, at, MPI_SHORT, m.comm);
    l.expect_v(m);
    MPI_Alltoallv(MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL, in.data(), counts, at, MPI_SHORT, m.comm);
    l.expect_v(m);
    MPI_Ialltoallv(out.data(), counts, at, MPI_SHORT, in.data(), counts, at, MPI_SHORT, m.comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    l.expect_v(m);
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
    MPI_Alltoallv_init(out.data(), counts, at, MPI_SHORT, in.data(), counts, at, MPI_SHORT, m.comm, MPI_INFO_NULL,
                       &request);
    started(request, 1);
    l.expect_v(m);
#endif
#if MPI_VERSION >= 4
    const MPI_Count* const large = l.large_counts.data();
    const MPI_Aint* const large_at = l.large_elements.data();
    MPI_Alltoallv_c(out.data(), large, large_at, MPI_SHORT, in.data(), large, large_at, MPI_SHORT, m.comm);
    l.expect_v(m);
#endif
}

void with_types(const Members& m) {
    const Lists l(m);
    const int* const counts = l.counts.data();
    const int* const at = l.bytes.data();
    const MPI_Datatype* const types = l.types.data();
    MPI_Request request;
    MPI_Alltoallw(out.data(), counts, at, types, in.data(), counts, at, types, m.comm);
    l.expect_w(m);
    MPI_Alltoallw(MPI_IN_PLACE, nullptr, nullptr, nullptr, in.data(), counts, at, types, m.comm);
    l.expect_w(m);
    MPI_Ialltoallw(out.data(), counts, at, types, in.data(), counts, at, types, m.comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    l.expect_w(m);
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
    MPI_Alltoallw_init(out.data(), counts, at, types, in.data(), counts, at, types, m.comm, MPI_INFO_NULL, &request);
    started(request, 1);
    l.expect_w(m);
#endif
#if MPI_VERSION >= 4
    const MPI_Count* const large = l.large_counts.data();
    const MPI_Aint* const large_at = l.large_bytes.data();
    MPI_Alltoallw_c(out.data(), large, large_at, types, in.data(), large, large_at, types, m.comm);
    l.expect_w(m);
#endif
}

/// Between even and odd ranks, whose halves have their ranks in falling order.
void between() {
    MPI_Comm half, comm;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, world_rank % 2 == 0 ? world_size - 1 : world_size - 2, 0, &comm);
    Members others{comm, 0, {}};
    for (int rank = world_size - 1; rank >= 0; --rank)
        if (rank % 2 != world_rank % 2) others.worlds.push_back(rank);
    MPI_Comm_rank(comm, &others.rank);
    MPI_Alltoall(out.data(), 13, MPI_CHAR, in.data(), 13, MPI_CHAR, comm);
    expect_each(others, 13);
    const Lists l(others);
    MPI_Alltoallv(out.data(), l.counts.data(), l.elements.data(), MPI_SHORT, in.data(), l.counts.data(),
                  l.elements.data(), MPI_SHORT, comm);
    l.expect_v(others);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&half);
}

/// Among all ranks, in any order, blocks that are alike don't count.
void among_all() {
    MPI_Comm copy, reversed;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &reversed);
    for (MPI_Comm comm : {MPI_COMM_WORLD, copy, reversed}) {
        MPI_Alltoall(out.data(), 3, MPI_SHORT, in.data(), 3, MPI_SHORT, comm);
        with_counts(members_of(comm));
    }
    MPI_Comm_free(&copy);
    MPI_Comm_free(&reversed);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    // Twice: handles of communicators that were freed come again with other ranks.
    for (const bool row_first : {true, false}) {
        for (const bool row : {row_first, !row_first}) {
            MPI_Comm part;
            MPI_Comm_split(MPI_COMM_WORLD, row ? world_rank / 2 : world_rank % 2, row ? world_rank : -world_rank,
                           &part);
            const Members members = members_of(part);
            alike(members);
            with_counts(members);
            with_types(members);
            MPI_Comm_free(&part);
        }
    }
    between();
    among_all();
    test::print(expected, world_rank);
    MPI_Finalize();
    return 0;
}
