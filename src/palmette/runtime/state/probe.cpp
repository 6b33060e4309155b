#include "palmette/runtime/state/probe.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "palmette/select/verdict.hpp"

namespace palmette::runtime {
namespace {

constexpr int probe_tag = 17;
constexpr int short_bytes = 8, long_bytes = 64 << 10;
/// The first messages of a pair set up its connection.
constexpr int warm_up = 2;
constexpr int most_short = 40, most_long = 10;
constexpr double budget_of_size_s = 1e-3;
constexpr double budget_s = 20e-3;

/// A position that this level tells apart from position 0 and no outer one does; -1 where there is none.
std::int32_t partner_at(const topology::Job& job, std::size_t level) {
    const auto end_of_first = [&](std::size_t l) {
        return l < job.levels().size() ? job.levels()[l].groups.size_of(0) : 1;
    };
    const std::int32_t around = level == 0 ? job.size() : end_of_first(level - 1);
    const std::int32_t own = end_of_first(level);
    return own < around ? own : -1;
}

/// Round trips between two ranks, of which the one at position 0 decides when they end: it says so in the first byte.
class PingPong {
  public:
    PingPong(MPI_Comm comm, int peer, bool leads) : comm_(comm), peer_(peer), leads_(leads), buffer_(long_bytes) {}

    /// Median one-way time at the leading rank; nothing after an error of the MPI.
    std::optional<double> run(int bytes, int most) {
        std::vector<double> times;
        const double begin = PMPI_Wtime();
        for (bool last = false; !last;) {
            const double start = PMPI_Wtime();
            const auto done = static_cast<int>(times.size());
            if (leads_) {
                last = done + 1 >= most || (done > warm_up && start - begin > budget_of_size_s);
                buffer_[0] = last ? 1 : 0;
            }
            const bool worked = leads_ ? send(bytes) && receive(bytes) : receive(bytes) && send(bytes);
            if (!worked) return std::nullopt;
            last = buffer_[0] != 0;
            times.push_back((PMPI_Wtime() - start) / 2);
        }
        times.erase(times.begin(), times.begin() + std::min<std::ptrdiff_t>(warm_up, std::ssize(times) - 1));
        return select::median(std::move(times));
    }

  private:
    bool send(int bytes) { return PMPI_Send(buffer_.data(), bytes, MPI_BYTE, peer_, probe_tag, comm_) == MPI_SUCCESS; }
    bool receive(int bytes) {
        return PMPI_Recv(buffer_.data(), bytes, MPI_BYTE, peer_, probe_tag, comm_, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    }

    MPI_Comm comm_;
    int peer_;
    bool leads_;
    std::vector<char> buffer_;
};

}  // namespace

std::optional<ProbedCosts> probe_costs(MPI_Comm comm, const topology::Job& job, int rank) {
    const std::int32_t position = job.position_of(topology::Rank{rank}).value;
    const int first = job.rank_at({0}).value;
    const bool leads = position == 0;
    const double begin = PMPI_Wtime();
    // Latency and rate of each level, 0: unknown; then whether it has worked.
    std::vector<double> found(2 * (job.levels().size() + 1) + 1, 0.0);
    found.back() = 1;
    for (std::size_t level = 0; level <= job.levels().size(); ++level) {
        const std::int32_t other = partner_at(job, level);
        if (other < 0 || (!leads && position != other)) continue;
        PingPong pair(comm, leads ? job.rank_at({other}).value : first, leads);
        // Out of time: one round trip tells the partner.
        const bool late = PMPI_Wtime() - begin > budget_s;
        const auto latency = pair.run(short_bytes, late ? 1 : most_short);
        const auto transfer = latency ? pair.run(long_bytes, late ? 1 : most_long) : std::nullopt;
        if (!transfer) {
            found.back() = 0;
        } else if (!late) {
            found[2 * level] = *latency;
            found[2 * level + 1] = *transfer > *latency ? long_bytes / (*transfer - *latency) : 0;
        }
    }
    if (PMPI_Bcast(found.data(), static_cast<int>(found.size()), MPI_DOUBLE, first, comm) != MPI_SUCCESS ||
        found.back() == 0)
        return std::nullopt;
    ProbedCosts out(job.levels().size() + 1);
    for (std::size_t level = 0; level < out.size(); ++level) {
        out[level].latency_s = found[2 * level];
        out[level].stream_bytes_per_s = found[2 * level + 1];
        if (found[2 * level] > 0) out[level].source = topology::CostSource::calibrated;
    }
    return out;
}

void apply_costs(const ProbedCosts& costs, const topology::Job& measured_on, topology::Job& job) {
    for (std::size_t l = 0; l < measured_on.levels().size(); ++l) {
        const auto level = job.find_level(measured_on.levels()[l].name);
        if (level && costs[l].known() && !job.levels()[*level].costs.known()) job.set_costs(*level, costs[l]);
    }
    if (costs.back().known() && !job.inside().known()) job.set_costs(job.levels().size(), costs.back());
}

}  // namespace palmette::runtime
