// What measured pairs of times say about two ways to do the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace palmette::select {

/// slower, faster   the median ratio ours / other is above 1.05 (below 1/1.05), and so many pairs agree that even odds
///                  would give as many or more with a probability of at most 5 % (one-sided sign test)
/// both             already after 3 pairs where each ratio is 1.5 or more, or 1 / 1.5 or less
/// same             25 pairs or more, and neither
/// open             anything else: more pairs are needed
enum class Verdict : std::uint8_t { open, faster, same, slower };
const char* name_of(Verdict verdict);

/// One-sided sign test (Arbuthnott 1710; Conover, Practical Nonparametric Statistics, 1999, 3.4): the probability that
/// a fair coin gives at least `wins` heads in `pairs` tosses. O(pairs).
double sign_test(std::size_t wins, std::size_t pairs);

inline constexpr double significant = 0.05;
inline constexpr std::size_t fewest_pairs = 5;
inline constexpr std::size_t most_pairs = 25;

/// `ours[i]` and `other[i]`, both above 0, were measured one after the other. Throws base::Error on lists of different
/// length.
Verdict judge(const std::vector<double>& ours, const std::vector<double>& other);

/// The lower one of the two in the middle of an even number of values; 0 of none.
double median(std::vector<double> values);

}  // namespace palmette::select
