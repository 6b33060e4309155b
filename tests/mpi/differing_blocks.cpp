// Calls whose ranks have blocks of different lengths, for what the report says of their bounds.
//
//     differing_blocks
//
// Block of rank r: 4000 (1 + r % 3) bytes; from a to b: 8000 ((3 a + b) % 4), 0 for some. One gatherv to rank 1 and one
// scatterv from rank 2, twice an allgatherv and a reduce_scatter, two alltoallv of all ranks, one among those of even
// and of odd numbers, and one alltoallw.

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace {

int block(int rank) { return 4000 * (1 + rank % 3); }
int between(int from, int to) { return 8000 * ((3 * from + to) % 4); }

struct Lengths {
    std::vector<int> counts, displs;
    int total = 0;
    void add(int count) {
        counts.push_back(count);
        displs.push_back(total);
        total += count;
    }
};

void exchange(MPI_Comm comm, bool own_types) {
    int rank = 0, size = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    Lengths sent, received;
    for (int other = 0; other < size; ++other) {
        sent.add(between(rank, other));
        received.add(between(other, rank));
    }
    std::vector<char> out(static_cast<std::size_t>(sent.total) + 1), in(static_cast<std::size_t>(received.total) + 1);
    const std::vector<MPI_Datatype> types(static_cast<std::size_t>(size), MPI_BYTE);
    if (own_types)
        MPI_Alltoallw(out.data(), sent.counts.data(), sent.displs.data(), types.data(), in.data(),
                      received.counts.data(), received.displs.data(), types.data(), comm);
    else
        MPI_Alltoallv(out.data(), sent.counts.data(), sent.displs.data(), MPI_BYTE, in.data(), received.counts.data(),
                      received.displs.data(), MPI_BYTE, comm);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    Lengths blocks;
    for (int r = 0; r < size; ++r) blocks.add(block(r));
    std::vector<char> own(static_cast<std::size_t>(block(rank))), all(static_cast<std::size_t>(blocks.total));
    const int* counts = blocks.counts.data();
    const int* displs = blocks.displs.data();
    MPI_Gatherv(own.data(), block(rank), MPI_BYTE, all.data(), counts, displs, MPI_BYTE, 1, MPI_COMM_WORLD);
    MPI_Scatterv(all.data(), counts, displs, MPI_BYTE, own.data(), block(rank), MPI_BYTE, 2, MPI_COMM_WORLD);
    for (int i = 0; i < 2; ++i) {
        MPI_Allgatherv(own.data(), block(rank), MPI_BYTE, all.data(), counts, displs, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Reduce_scatter(all.data(), own.data(), counts, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    }
    exchange(MPI_COMM_WORLD, false);
    exchange(MPI_COMM_WORLD, false);
    exchange(MPI_COMM_WORLD, true);
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    exchange(half, false);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
