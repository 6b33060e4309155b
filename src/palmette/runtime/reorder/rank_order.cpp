#include "palmette/runtime/reorder/rank_order.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <numeric>
#include <string>

#include "palmette/base/error.hpp"
#include "palmette/runtime/serve/background.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/topology/mapping/bottleneck_ring.hpp"
#include "palmette/topology/mapping/rank_orders.hpp"

namespace palmette::runtime {
namespace {

using base::fail;
using topology::FreePlaces;
using topology::RankOrder;

/// Where the ring leaves each group once: topology order, from rank 0 on.
RankOrder ring_along(const topology::Job& job) {
    RankOrder out(static_cast<std::size_t>(job.size()));
    const std::int32_t start = job.position_of(topology::Rank{0}).value;
    for (std::int32_t i = 0; i < job.size(); ++i)
        out[static_cast<std::size_t>(i)] = job.rank_at({(start + i) % job.size()}).value;
    return out;
}

struct NamedOrder {
    std::string_view name;
    RankOrder (*of)(FreePlaces&);
};
constexpr std::array orders{NamedOrder{"greedy", topology::ring_order},
                            NamedOrder{"recursive_doubling", topology::recursive_doubling_order},
                            NamedOrder{"binomial_gather", topology::binomial_gather_order},
                            NamedOrder{"binomial_bcast", topology::binomial_bcast_order}};

RankOrder order_of(const topology::Job& job, std::string_view name, const double* distances) {
    const auto size = static_cast<std::size_t>(job.size());
    std::optional<topology::Distances> matrix;
    if (distances) matrix.emplace(job.size(), std::vector<double>(distances, distances + size * size));
    if (name == "ring") return matrix ? topology::bottleneck_ring(*matrix).order : ring_along(job);
    const auto known = std::find_if(orders.begin(), orders.end(), [&](const auto& one) { return one.name == name; });
    if (known == orders.end())
        fail("order '", name, "': expected greedy, ring, recursive_doubling, binomial_gather or binomial_bcast");
    const auto places = matrix ? topology::free_places(*matrix) : topology::free_places(job);
    return known->of(*places);
}

double median_of(std::array<double, ping_pongs>& times) {
    std::nth_element(times.begin(), times.begin() + ping_pongs / 2, times.end());
    return times[ping_pongs / 2];
}

/// Whom a rank meets in a round of a tournament of `even` players, in which everybody meets everybody once.
int partner_in(int round, int rank, int even) {
    const int last = even - 1;
    // The last one meets who would meet itself: 2 r = round, modulo an odd number.
    if (rank == last) return static_cast<int>(std::int64_t{round} * (even / 2) % last);
    const int other = ((round - rank) % last + last) % last;
    return other == rank ? last : other;
}

/// Half of a round trip, as the first of the pair measures it; returns the MPI's code.
int half_round_trip(MPI_Comm comm, int rank, int partner, std::vector<char>& data, double& half_s) {
    const auto bytes = static_cast<int>(data.size());
    const auto go = [&](bool sends) {
        return sends ? PMPI_Send(data.data(), bytes, MPI_BYTE, partner, 0, comm)
                     : PMPI_Recv(data.data(), bytes, MPI_BYTE, partner, 0, comm, MPI_STATUS_IGNORE);
    };
    const bool first = rank < partner;
    std::array<double, ping_pongs> times{};
    for (int i = -1; i < ping_pongs; ++i) {  // the first one waits for the partner, and sets up the connection
        const double start = PMPI_Wtime();
        if (const int code = go(first)) return code;
        if (const int code = go(!first)) return code;
        if (i >= 0) times[static_cast<std::size_t>(i)] = (PMPI_Wtime() - start) / 2;
    }
    half_s = median_of(times);
    return MPI_SUCCESS;
}

}  // namespace

void reorder_ranks(MPI_Comm comm, Communicator& state, std::string_view order, const double* distances,
                   MPI_Comm* made) {
    before_blocking(comm);
    const auto same = all_same(state.shadow_comm(), std::hash<std::string_view>{}(order));
    const auto ready = all_true(state.shadow_comm(), made != nullptr);
    if (!same || !ready) fail("the ranks can't compare what they ask for: MPI reports an error");
    if (!*ready) fail(made ? "another rank passes no communicator" : "reordered is null");
    if (!*same) fail("order '", order, "': other ranks name another one; pass the same on all");
    std::vector<int> numbers;
    std::string complaint;
    if (state.rank() == 0) {
        numbers.assign(static_cast<std::size_t>(state.size()), -1);
        try {
            const RankOrder found = order_of(state.job(), order, distances);
            for (std::size_t r = 0; r < found.size(); ++r)
                numbers[static_cast<std::size_t>(found[r])] = static_cast<int>(r);
        } catch (const std::bad_alloc&) {
            complaint = "out of memory";
        } catch (const std::exception& error) {
            complaint = error.what();
        }
    }
    int number = -1;
    if (PMPI_Scatter(numbers.data(), 1, MPI_INT, &number, 1, MPI_INT, 0, comm) != MPI_SUCCESS)
        fail("MPI reports an error in MPI_Scatter");
    if (!complaint.empty()) fail(complaint);
    if (number < 0) fail("rank 0 finds no order; its error says why");
    MPI_Comm out = MPI_COMM_NULL;
    if (PMPI_Comm_split(comm, 0, number, &out) != MPI_SUCCESS) fail("MPI reports an error in MPI_Comm_split");
    *made = out;
}

void measure_distances(MPI_Comm comm, Communicator& state, std::int64_t bytes, double* seconds) {
    before_blocking(comm);
    const int rank = state.rank(), size = state.size();
    const bool in_range = bytes >= 0 && bytes <= std::numeric_limits<int>::max();
    std::vector<char> data;
    std::vector<double> mine;
    bool has_memory = true;
    try {
        if (in_range) data.assign(static_cast<std::size_t>(bytes), 1);
        mine.assign(static_cast<std::size_t>(size), 0.0);
    } catch (const std::bad_alloc&) {
        has_memory = false;
    }
    // The lowest bit isn't compared.
    const auto same = all_same(state.shadow_comm(), static_cast<std::uint64_t>(bytes) << 1);
    const auto ready = all_true(state.shadow_comm(), {rank != 0 || seconds, has_memory, true, true, true});
    if (!same || !ready) fail("the ranks can't compare what they ask for: MPI reports an error");
    if (!*same) fail("messages of ", bytes, " bytes, and of others on other ranks; pass the same on all");
    if (!in_range) fail("messages of ", bytes, " bytes: expected 0 to 2147483647");
    if (!(*ready)[0]) fail("seconds is null at rank 0, which gets the matrix");
    if (!(*ready)[1]) fail("a rank has no memory for messages of ", bytes, " bytes; ask for shorter ones");
    // Its own messages: the program may have receives for any source and tag outstanding on `comm`.
    MPI_Comm apart = MPI_COMM_NULL;
    if (PMPI_Comm_split(comm, 0, rank, &apart) != MPI_SUCCESS) fail("MPI reports an error in MPI_Comm_split");
    int code = MPI_SUCCESS;
    const int even = size + size % 2;
    for (int round = 0; round + 1 < even && code == MPI_SUCCESS; ++round) {
        const int partner = partner_in(round, rank, even);
        if (partner >= size) continue;
        double half = 0;
        code = half_round_trip(apart, rank, partner, data, half);
        if (rank < partner) mine[static_cast<std::size_t>(partner)] = half;
    }
    if (code == MPI_SUCCESS) code = PMPI_Gather(mine.data(), size, MPI_DOUBLE, seconds, size, MPI_DOUBLE, 0, apart);
    PMPI_Comm_free(&apart);
    if (code != MPI_SUCCESS) fail("MPI reports an error in a message");
    const auto at = [size](int a, int b) {
        return static_cast<std::size_t>(a) * static_cast<std::size_t>(size) + static_cast<std::size_t>(b);
    };
    for (int a = 0; rank == 0 && a < size; ++a)
        for (int b = 0; b < a; ++b) seconds[at(a, b)] = seconds[at(b, a)];
}

}  // namespace palmette::runtime
