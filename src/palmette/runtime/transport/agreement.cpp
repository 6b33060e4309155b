#include "palmette/runtime/transport/agreement.hpp"

#include <algorithm>

#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {
namespace {

using Numbers = std::array<long long, 12>;
constexpr int number_count = static_cast<int>(Numbers().size());
constexpr int agreement_tag = 11;

bool receive(Numbers& numbers, int from, MPI_Comm comm) {
    if (!has_outstanding())
        return PMPI_Recv(numbers.data(), number_count, MPI_LONG_LONG, from, agreement_tag, comm, MPI_STATUS_IGNORE) ==
               MPI_SUCCESS;
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = PMPI_Irecv(numbers.data(), number_count, MPI_LONG_LONG, from, agreement_tag, comm, &request);
    return complete(code, request) == MPI_SUCCESS;
}

/// Combines all ranks' numbers element by element, on all ranks. False on an MPI error.
template <class Combine>
bool combined(MPI_Comm comm, Numbers& numbers, Combine combine) {
    int rank = 0;
    int size = 1;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    int parent_distance = 1;
    while (parent_distance < size && rank % (2 * parent_distance) == 0) {
        if (rank + parent_distance < size) {
            Numbers other{};
            if (!receive(other, rank + parent_distance, comm)) return false;
            for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = combine(numbers[i], other[i]);
        }
        parent_distance *= 2;
    }
    if (rank != 0) {
        const int parent = rank - parent_distance;
        if (PMPI_Send(numbers.data(), number_count, MPI_LONG_LONG, parent, agreement_tag, comm) != MPI_SUCCESS)
            return false;
        if (!receive(numbers, parent, comm)) return false;
    }
    for (int distance = parent_distance / 2; distance >= 1; distance /= 2)
        if (rank + distance < size)
            if (PMPI_Send(numbers.data(), number_count, MPI_LONG_LONG, rank + distance, agreement_tag, comm) !=
                MPI_SUCCESS)
                return false;
    return true;
}

bool minimum(MPI_Comm comm, Numbers& numbers) {
    return combined(comm, numbers, [](long long a, long long b) { return std::min(a, b); });
}

/// A number and its negative have minima of opposite sign only where all ranks pass the same.
long long halved(std::uint64_t hash) { return static_cast<long long>(hash >> 1); }

}  // namespace

std::optional<Agreement> agree(MPI_Comm comm, const Agreement& mine) {
    const long long hash = halved(mine.settings_hash);
    const long long values = halved(mine.values_hash);
    const long long verdicts = halved(mine.verdicts_hash);
    Numbers numbers{hash,    -hash,         mine.world_known, mine.has_communicator, mine.host_memory, values,
                    -values, mine.recorded, mine.no_driver,   mine.mpi_takes,        verdicts,         -verdicts};
    if (!minimum(comm, numbers)) return std::nullopt;
    Agreement out = mine;
    out.settings_agree = numbers[0] == -numbers[1];
    out.world_known = numbers[2] != 0;
    out.has_communicator = numbers[3] != 0;
    out.host_memory = numbers[4] != 0;
    out.values_agree = numbers[5] == -numbers[6];
    out.recorded = numbers[7] != 0;
    out.no_driver = numbers[8] != 0;
    out.mpi_takes = numbers[9] != 0;
    out.verdicts_agree = numbers[10] == -numbers[11];
    return out;
}

std::optional<BlockLengths> agree_on_blocks(MPI_Comm comm, const BlockLengths& mine) {
    Numbers numbers{mine.repeat, mine.shortest, -mine.longest};
    if (!minimum(comm, numbers)) return std::nullopt;
    return BlockLengths{numbers[0] != 0, numbers[1], -numbers[2]};
}

std::optional<bool> all_true(MPI_Comm comm, bool mine) {
    Numbers numbers{mine};
    if (!minimum(comm, numbers)) return std::nullopt;
    return numbers[0] != 0;
}

std::optional<std::array<bool, 5>> all_true(MPI_Comm comm, std::array<bool, 5> mine) {
    Numbers numbers{};
    std::copy(mine.begin(), mine.end(), numbers.begin());
    if (!minimum(comm, numbers)) return std::nullopt;
    std::array<bool, 5> out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = numbers[i] != 0;
    return out;
}

std::optional<long long> smallest(MPI_Comm comm, long long mine) {
    Numbers numbers{mine};
    if (!minimum(comm, numbers)) return std::nullopt;
    return numbers[0];
}

std::optional<Sums> sums(MPI_Comm comm, const Sums& mine) {
    Numbers numbers{};
    std::copy(mine.begin(), mine.end(), numbers.begin());
    const auto add = [](long long a, long long b) {
        return static_cast<long long>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    };
    if (!combined(comm, numbers, add)) return std::nullopt;
    Sums out{};
    std::copy_n(numbers.begin(), out.size(), out.begin());
    return out;
}

std::optional<bool> all_same(MPI_Comm comm, std::uint64_t mine) {
    Numbers numbers{halved(mine), -halved(mine)};
    if (!minimum(comm, numbers)) return std::nullopt;
    return numbers[0] == -numbers[1];
}

}  // namespace palmette::runtime
