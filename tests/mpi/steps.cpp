// Steps of an iterative program, for what `palmette what-if` expects of them.
//
//     steps COLLECTIVE BYTES HALO ROUNDS
//
// In each round all compute, the ranks differently long; send HALO bytes to each of four neighbours of a grid four
// ranks wide; and call MPI_Allgather, MPI_Bcast, MPI_Alltoall, MPI_Alltoallw, MPI_Allreduce or none with BYTES.
#include <mpi.h>
#include <unistd.h>

#if defined(PALMETTE_ABI_SMPI)
extern "C" {
#include "recorded_names.h"  // its calls are recorded
}
#endif

#include <array>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

constexpr std::size_t neighbours = 4;

void exchange(int rank, int size, int bytes, std::vector<char>& memory) {
    const std::array<int, neighbours> peers{(rank + 1) % size, (rank + size - 1) % size, (rank + 4) % size,
                                            (rank + size - 4) % size};
    std::array<MPI_Request, 2 * neighbours> requests{};
    for (std::size_t k = 0; k < neighbours; ++k) {
        // What goes forward comes from behind.
        const int tag = static_cast<int>(k);
        MPI_Irecv(memory.data() + k * static_cast<std::size_t>(bytes), bytes, MPI_CHAR, peers[k], tag ^ 1,
                  MPI_COMM_WORLD, &requests[2 * k]);
        MPI_Isend(memory.data() + (neighbours + k) * static_cast<std::size_t>(bytes), bytes, MPI_CHAR, peers[k], tag,
                  MPI_COMM_WORLD, &requests[2 * k + 1]);
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

}  // namespace

[[gnu::visibility("default")]] int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
    const std::string_view collective = argv[1];
    const int bytes = std::atoi(argv[2]);
    const int halo = std::atoi(argv[3]);
    const int rounds = std::atoi(argv[4]);
    // Of all ranks, where there are blocks of each.
    const bool of_all = collective == "allgather" || collective.starts_with("alltoall");
    const auto whole = static_cast<std::size_t>(of_all ? size : 1) * static_cast<std::size_t>(bytes + 8);
    std::vector<char> in(whole);
    std::vector<char> out(whole);
    std::vector<char> memory(2 * neighbours * static_cast<std::size_t>(halo + 1));
    const auto p = static_cast<std::size_t>(size);
    const std::vector<int> counts(p, bytes);
    const std::vector<MPI_Datatype> types(p, MPI_CHAR);
    std::vector<int> displacements(p);
    for (std::size_t r = 0; r < p && of_all; ++r) displacements[r] = static_cast<int>(r) * bytes;
    for (int i = 0; i < rounds; ++i) {
        usleep(static_cast<useconds_t>(2000 + 500 * ((rank + i) % 4)));
        if (halo > 0) exchange(rank, size, halo, memory);
        if (collective == "allgather")
            MPI_Allgather(in.data(), bytes, MPI_CHAR, out.data(), bytes, MPI_CHAR, MPI_COMM_WORLD);
        if (collective == "bcast") MPI_Bcast(in.data(), bytes, MPI_CHAR, 3, MPI_COMM_WORLD);
        if (collective == "alltoall")
            MPI_Alltoall(in.data(), bytes, MPI_CHAR, out.data(), bytes, MPI_CHAR, MPI_COMM_WORLD);
        if (collective == "alltoallw")
            MPI_Alltoallw(in.data(), counts.data(), displacements.data(), types.data(), out.data(), counts.data(),
                          displacements.data(), types.data(), MPI_COMM_WORLD);
        if (collective == "allreduce")
            MPI_Allreduce(in.data(), out.data(), bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
