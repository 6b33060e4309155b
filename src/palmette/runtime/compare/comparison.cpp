#include "palmette/runtime/compare/comparison.hpp"

#include <algorithm>
#include <array>

namespace palmette::runtime {

namespace {

/// Two calls are comparable when one moves at most this many times as much as the other.
constexpr double comparable_ratio = 1.25;

/// Before there is a verdict, calls between pairs follow a median ratio as large as this.
constexpr double clear_ratio = 1.3;
constexpr std::size_t few_pairs = 3;

/// Calls until the next pair after one that failed.
constexpr std::int64_t after_failure = 4096;

}  // namespace

double Comparison::ours_s() const { return select::median(ours_); }
double Comparison::mpi_s() const { return select::median(mpi_); }

bool Comparison::record(Turn turn, double seconds, int code) {
    (turn == Turn::mpi ? mpi_now_ : ours_now_) = seconds;
    (turn == Turn::mpi ? mpi_bytes_ : ours_bytes_) = bytes_;
    failed_ = failed_ || code != MPI_SUCCESS;
    at_second_ = !at_second_;
    return at_second_ ? false : agree_on_pair();
}

bool Comparison::agree_on_pair() {
    std::array<double, 6> agreed{ours_now_,
                                 mpi_now_,
                                 failed_ ? 1.0 : 0.0,
                                 -barriers_s_,
                                 static_cast<double>(ours_bytes_),
                                 static_cast<double>(mpi_bytes_)};
    const int code =
        PMPI_Allreduce(MPI_IN_PLACE, agreed.data(), static_cast<int>(agreed.size()), MPI_DOUBLE, MPI_MAX, shadow_comm_);
    const auto [ours, mpi, failed, barriers, ours_bytes, mpi_bytes] = agreed;
    failed_ = false;
    barriers_s_ = 0;
    mpi_first_ = !mpi_first_;
    if (code != MPI_SUCCESS || failed > 0 || ours <= 0 || mpi <= 0) {
        // Calls that fail, or that the clock doesn't resolve, are inconclusive.
        next_ = calls_ + after_failure;
        return false;
    }
    before_ = verdict_;
    // The rank that comes last waits for nobody's computation. Assumes that this agreement takes as long as a barrier.
    const double synchronising_s = -1.5 * barriers;
    cost_s_ = std::max(0.0, synchronising_s + (mpi_meanwhile_ ? ours - mpi : mpi - ours));
    comparable_ = warm_ && std::max(ours_bytes, mpi_bytes) <= comparable_ratio * std::min(ours_bytes, mpi_bytes);
    if (comparable_) add(ours, mpi);
    // Set-up that only the first pair has doesn't postpone the second one.
    pace_.add(warm_ ? ours : std::min(ours, mpi), mpi, synchronising_s, verdict_);
    warm_ = true;
    next_ = terms_.once && verdict_ != select::Verdict::open ? never : calls_ + pace_.calls_to_next_pair(calls_);
    return true;
}

void Comparison::add(double ours, double mpi) {
    if (ours_.size() == select::most_pairs) {
        // The cluster's load may have changed: the oldest pair is dropped.
        ours_.erase(ours_.begin());
        mpi_.erase(mpi_.begin());
    }
    ours_.push_back(ours);
    mpi_.push_back(mpi);
    verdict_ = select::judge(ours_, mpi_);
    mpi_meanwhile_ = verdict_ == select::Verdict::open && leans_to_mpi();
}

bool Comparison::leans_to_mpi() const {
    const double ratio = ours_s() / mpi_s();
    if (!terms_.on_trial) return ratio > clear_ratio;
    // Where bits depend on who performs a call, it changes once at most.
    return terms_.once || ours_.size() < few_pairs || ratio > 1 / clear_ratio;
}

}  // namespace palmette::runtime
