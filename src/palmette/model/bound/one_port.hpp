// Lower bounds for schedules in which a member sends one message at a time and receives one at a time.
#pragma once

#include <cstdint>

namespace palmette::model {

/// Members with one port in each direction, which a message of b bytes occupies for latency_s + b / bytes_per_s.
struct OnePort {
    std::int64_t members = 1;
    double latency_s = 0;
    double bytes_per_s = 0;  ///< 0: unlimited
};

/// The smallest q with 2^q >= members.
std::int32_t doublings(std::int64_t members);

/// A schedule in `blocks` equal blocks that takes the fewest rounds, and its time.
struct BlockRounds {
    std::int64_t blocks = 1;
    std::int64_t rounds = 0;
    double seconds = 0;
};

/// A vector of `bytes` bytes to or from all members, in equal blocks of at least `element_bytes`: n - 1 + q rounds of
/// latency_s + bytes / n / bytes_per_s, least over n, q = doublings(members). About (sqrt((q - 1) latency_s) +
/// sqrt(bytes / bytes_per_s))^2; circulant graphs reach it for any number of members.
///
/// Proof. For the first time, the root sends at most one of the n blocks in a round, so the last of them is still with
/// the root alone after n - 1 rounds. Its holders at most double in a round, so that q more are needed. A reduction is
/// the same reversed in time. (Träff, arXiv 2407.18004, 2024; ACM TOPC 2025.)
BlockRounds least_rounds(const OnePort& port, std::int64_t bytes, std::int64_t element_bytes = 1);

/// Members of `bytes` bytes each, all of which one member, or each, must get or give away: q latency_s + (members - 1)
/// bytes / bytes_per_s, for messages of any lengths.
///
/// Proof. To know x bytes, of each member at most b, takes f(x) >= ceil(lg ceil(x / b)) latency_s + (x - b) /
/// bytes_per_s, by induction. Of the x, the last message brought s; before it the receiver knew x - s and the sender s.
/// The larger one of these is y >= x / 2, for which it took f(y), with one latency less; the message takes another one,
/// and its s bytes: x - b in all if y = x - s, and 2 s - b >= x - b if y = s. Reversed in time the same holds for
/// scatter and reduce_scatter. (Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE TPDS 8(11), 1997, have each part alone.)
double least_collecting_s(const OnePort& port, std::int64_t bytes);

}  // namespace palmette::model
