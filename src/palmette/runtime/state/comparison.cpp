#include "palmette/runtime/state/comparison.hpp"

#include <algorithm>
#include <array>

#include "palmette/select/pace.hpp"

namespace palmette::runtime {
namespace {

/// Two calls may be compared when one moves at most so many times as much as the other.
constexpr double alike = 1.25;

}  // namespace

double Comparison::ours_s() const { return select::median(ours_); }
double Comparison::mpi_s() const { return select::median(mpi_); }

bool Comparison::took(Turn turn, double seconds, int code) {
    (turn == Turn::mpi ? mpi_now_ : ours_now_) = seconds;
    (turn == Turn::mpi ? mpi_bytes_ : ours_bytes_) = bytes_;
    failed_ = failed_ || code != MPI_SUCCESS;
    at_second_ = !at_second_;
    return at_second_ ? false : settle();
}

bool Comparison::settle() {
    std::array<double, 7> agreed{ours_now_,
                                 mpi_now_,
                                 failed_ ? 1.0 : 0.0,
                                 agreeing_s_,
                                 preparing_s_,
                                 static_cast<double>(ours_bytes_),
                                 static_cast<double>(mpi_bytes_)};
    const double begin = PMPI_Wtime();
    const int code =
        PMPI_Allreduce(MPI_IN_PLACE, agreed.data(), static_cast<int>(agreed.size()), MPI_DOUBLE, MPI_MAX, hidden_);
    agreeing_s_ = PMPI_Wtime() - begin;
    const auto [ours, mpi, failed, agreeing, preparing, ours_bytes, mpi_bytes] = agreed;
    failed_ = false;
    preparing_s_ = 0;
    mpi_first_ = !mpi_first_;
    if (code != MPI_SUCCESS || failed > 0 || ours <= 0 || mpi <= 0) {
        // Nothing can be learned from calls that fail, or that the clock can't see.
        postpone();
        return false;
    }
    before_ = verdict_;
    // Barriers and agreements are taken to last as long as the last one of these.
    cost_s_ = beside_ ? mpi + preparing + 4 * agreeing : std::max(0.0, mpi - ours) + 3 * agreeing;
    counts_ = std::max(ours_bytes, mpi_bytes) <= alike * std::min(ours_bytes, mpi_bytes);
    if (counts_) add(ours, mpi);
    next_ = calls_ + select::calls_to_next_pair(cost_s_, ours, share_, verdict_);
    return true;
}

void Comparison::add(double ours, double mpi) {
    if (ours_.size() == select::most_pairs) {
        // The cluster's load may have changed: old pairs make room.
        ours_.erase(ours_.begin());
        mpi_.erase(mpi_.begin());
    }
    ours_.push_back(ours);
    mpi_.push_back(mpi);
    verdict_ = select::judge(ours_, mpi_);
}

}  // namespace palmette::runtime
