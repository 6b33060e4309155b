#include "palmette/select/pace.hpp"

#include <algorithm>

namespace palmette::select {

void Pace::add(double ours_s, double mpi_s, double synchronising_s, Verdict verdict) {
    const auto keep = [](std::vector<double>& values, double value) {
        if (values.size() == most_pairs) values.erase(values.begin());
        values.push_back(value);
    };
    keep(ours_, ours_s);
    keep(mpi_, mpi_s);
    keep(synchronising_, synchronising_s);
    verdict_ = verdict;
    ++pairs_;
}

std::int64_t Pace::calls_to_next_pair(std::int64_t calls) const {
    constexpr double most = 1e12;
    const double ours = median(ours_), mpi = median(mpi_), synchronising = median(synchronising_);
    double wait = 0;
    if (verdict_ == Verdict::open) {
        const double pair = std::max(0.0, synchronising + ours - mpi);
        wait = ((pairs_ + 1) * pair / mpi - credit_) / share_ - static_cast<double>(calls);
    } else {
        wait = (synchronising + std::max(0.0, mpi - ours)) / (share_ / 10 * ours);
    }
    return 1 + static_cast<std::int64_t>(std::clamp(wait, 0.0, most));
}

}  // namespace palmette::select
