#include "palmette/select/verdict.hpp"

#include <algorithm>
#include <cmath>

#include "palmette/base/error.hpp"

namespace palmette::select {
namespace {

constexpr double margin = 1.05;
/// So much slower or faster in each of a few pairs needs no more of them.
constexpr double plain = 1.5;
constexpr std::size_t fewest_plain_pairs = 3;

}  // namespace

double sign_test(std::size_t wins, std::size_t pairs) {
    // long double: 2^-pairs is no double beyond 1,074 pairs.
    long double sum = 0;
    long double exactly = std::ldexp(1.0L, -static_cast<int>(pairs));  // the probability of k wins, from k = 0
    for (std::size_t k = 0; k <= pairs; ++k) {
        if (k >= wins) sum += exactly;
        exactly *= static_cast<long double>(pairs - k) / static_cast<long double>(k + 1);
    }
    return static_cast<double>(sum);
}

const char* name_of(Verdict verdict) {
    switch (verdict) {
        case Verdict::open:
            return "open";
        case Verdict::faster:
            return "faster";
        case Verdict::same:
            return "same";
        case Verdict::slower:
            return "slower";
    }
    return "?";
}

Verdict judge(const std::vector<double>& ours, const std::vector<double>& other) {
    if (ours.size() != other.size())
        throw base::Error(base::cat("judge: ", ours.size(), " times of ours and ", other.size(),
                                    " of the other; pairs need as many of each"));
    const std::size_t n = ours.size();
    std::vector<double> ratios(n);
    std::size_t lost = 0;
    std::size_t won = 0;
    for (std::size_t i = 0; i < n; ++i) {
        ratios[i] = ours[i] / other[i];
        lost += ratios[i] > 1 ? 1 : 0;
        won += ratios[i] < 1 ? 1 : 0;
    }
    if (n >= fewest_plain_pairs) {
        const auto [least, most] = std::ranges::minmax_element(ratios);
        if (*least >= plain) return Verdict::slower;
        if (*most <= 1 / plain) return Verdict::faster;
    }
    if (n < fewest_pairs) return Verdict::open;
    const double ratio = median(std::move(ratios));
    if (ratio > margin && sign_test(lost, n) <= significant) return Verdict::slower;
    if (ratio < 1 / margin && sign_test(won, n) <= significant) return Verdict::faster;
    return n >= most_pairs ? Verdict::same : Verdict::open;
}

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace palmette::select
