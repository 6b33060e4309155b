#include "palmette/runtime/state/comparison.hpp"

#include <algorithm>
#include <array>

#include "palmette/runtime/observe/report_gain.hpp"
#include "palmette/select/pace.hpp"

namespace palmette::runtime {

static_assert(Comparison::first == Gain::seldom);

namespace {

/// Two calls are comparable when one moves at most this many times as much as the other.
constexpr double comparable_ratio = 1.25;

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
    std::array<double, 7> agreed{ours_now_,
                                 mpi_now_,
                                 failed_ ? 1.0 : 0.0,
                                 agreeing_s_,
                                 preparing_s_,
                                 static_cast<double>(ours_bytes_),
                                 static_cast<double>(mpi_bytes_)};
    const double begin = PMPI_Wtime();
    const int code =
        PMPI_Allreduce(MPI_IN_PLACE, agreed.data(), static_cast<int>(agreed.size()), MPI_DOUBLE, MPI_MAX, shadow_comm_);
    agreeing_s_ = PMPI_Wtime() - begin;
    const auto [ours, mpi, failed, agreeing, preparing, ours_bytes, mpi_bytes] = agreed;
    failed_ = false;
    preparing_s_ = 0;
    mpi_first_ = !mpi_first_;
    if (code != MPI_SUCCESS || failed > 0 || ours <= 0 || mpi <= 0) {
        // Calls that fail, or that the clock doesn't resolve, are inconclusive.
        postpone();
        return false;
    }
    before_ = verdict_;
    // Assumes that each barrier and agreement takes as long as the last agreement.
    cost_s_ = shadow_ ? mpi + preparing + 4 * agreeing : std::max(0.0, mpi - ours) + 3 * agreeing;
    comparable_ = std::max(ours_bytes, mpi_bytes) <= comparable_ratio * std::min(ours_bytes, mpi_bytes);
    if (comparable_) add(ours, mpi);
    next_ = calls_ + select::calls_to_next_pair(cost_s_, ours, share_, verdict_);
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
}

}  // namespace palmette::runtime
