#include "palmette/runtime/start/probe.hpp"

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
constexpr int overhead_rounds = 3, messages_a_round = 16;
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

/// Round trips between two ranks, of which the one at position 0 decides when they end, and whether more follow: it
/// says so in the first byte.
class PingPong {
  public:
    PingPong(MPI_Comm comm, int peer, bool leads) : comm_(comm), peer_(peer), leads_(leads), buffer_(long_bytes) {}

    /// Median one-way time at the leading rank; nothing after an error of the MPI.
    std::optional<double> run(int bytes, int most, bool late = false) {
        std::vector<double> times;
        const double begin = PMPI_Wtime();
        for (bool last = false; !last;) {
            const double start = PMPI_Wtime();
            const auto done = static_cast<int>(times.size());
            if (leads_) {
                last = done + 1 >= most || (done > warm_up && start - begin > budget_of_size_s);
                buffer_[0] = !last ? more : late ? end : pause;
            }
            const bool worked = leads_ ? send(bytes) && receive(bytes) : receive(bytes) && send(bytes);
            if (!worked) return std::nullopt;
            last = buffer_[0] != more;
            times.push_back((PMPI_Wtime() - start) / 2);
        }
        times.erase(times.begin(), times.begin() + std::min<std::ptrdiff_t>(warm_up, std::ssize(times) - 1));
        return select::median(std::move(times));
    }

    /// Time that a further short message of a batch takes, at the busier one of its ends; nothing after an error.
    std::optional<double> overhead(double latency_s) {
        std::vector<double> times;
        for (int round = 0; round < overhead_rounds; ++round) {
            const double start = PMPI_Wtime();
            for (int i = 0; i < messages_a_round; ++i)
                if (!(leads_ ? send(short_bytes) : receive(short_bytes))) return std::nullopt;
            if (!(leads_ ? receive(short_bytes) : send(short_bytes))) return std::nullopt;
            times.push_back(PMPI_Wtime() - start);
        }
        const double single_s = 2 * latency_s;
        return std::max(0.0, select::median(std::move(times)) - single_s) / (messages_a_round - 1);
    }

    /// Both know it after `run`.
    bool ended() const { return buffer_[0] == end; }

  private:
    static constexpr char more = 0, pause = 1, end = 2;

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
    // Latency, overhead and rate of each level, 0: unknown; then whether it has worked.
    std::vector<double> found(3 * (job.levels().size() + 1) + 1, 0.0);
    found.back() = 1;
    for (std::size_t level = 0; level <= job.levels().size(); ++level) {
        const std::int32_t other = partner_at(job, level);
        if (other < 0 || (!leads && position != other)) continue;
        PingPong pair(comm, leads ? job.rank_at({other}).value : first, leads);
        // Out of time: one round trip tells the partner.
        const bool late = leads && PMPI_Wtime() - begin > budget_s;
        const auto latency = pair.run(short_bytes, late ? 1 : most_short, late);
        if (latency && pair.ended()) continue;
        const auto overhead = latency ? pair.overhead(*latency) : std::nullopt;
        const auto transfer = overhead ? pair.run(long_bytes, most_long) : std::nullopt;
        if (!transfer) {
            found.back() = 0;
        } else {
            found[3 * level] = *latency;
            found[3 * level + 1] = *overhead;
            found[3 * level + 2] = *transfer > *latency ? long_bytes / (*transfer - *latency) : 0;
        }
    }
    if (PMPI_Bcast(found.data(), static_cast<int>(found.size()), MPI_DOUBLE, first, comm) != MPI_SUCCESS ||
        found.back() == 0)
        return std::nullopt;
    ProbedCosts out(job.levels().size() + 1);
    for (std::size_t level = 0; level < out.size(); ++level) {
        out[level].latency_s = found[3 * level];
        out[level].overhead_s = std::min(found[3 * level + 1], found[3 * level] / 2);
        out[level].stream_bytes_per_s = found[3 * level + 2];
        if (found[3 * level] > 0) out[level].source = topology::CostSource::calibrated;
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
