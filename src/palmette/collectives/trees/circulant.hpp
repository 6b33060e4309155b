// Round-optimal broadcast of n blocks on a circulant graph: the schedule of one member, computed independently of
// others.
//
// q = ceil(lg p). In round k (mod q) every member r sends to r + skip[k] and receives from r - skip[k], modulo p, where
// skip[q] = p and each skip is half of the next one, rounded up. p = 8, skips 1 2 4:
//
//     0 ──1──► 1      0 ──2──► 2      0 ──4──► 4        and the same from every other member at the same time
//
// The root 0 sends block 0 in the first round, block 1 in the second and so on; after n - 1 + q rounds all have all n
// blocks, which is the lower bound for any p. Träff: "Optimal, logarithmic time construction of round-optimal n-block
// broadcast schedules", arXiv 2312.11236 (2023); ACM TOPC 2025.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace palmette::collectives {

/// skip[0..q] for p >= 1 members, ascending, skip[q] = p; q = ceil(lg p).
std::vector<std::int32_t> circulant_skips(std::int32_t p);

/// The block that one member receives or sends in each of the q rounds of the first phase. An entry e of a later phase
/// j stands for block e + j q; a negative block is nothing.
struct CirculantSchedule {
    std::vector<std::int32_t> recv, send;
};

/// The blocks that member r (0 is the root) receives in the rounds of a phase: the blocks -1, ..., -q of the phase
/// before, but for one, and one of this phase. O(log p) visits.
std::vector<std::int32_t> circulant_recv_blocks(const std::vector<std::int32_t>& skips, std::int32_t r);
/// Both sides, O(log^2 p): what a member sends in a round is what its peer receives.
CirculantSchedule circulant_schedule(std::int32_t p, std::int32_t r);

/// One member's round of a broadcast of n blocks.
struct CirculantRound {
    std::int32_t to = 0, from = 0;
    /// The block sent to `to` or received from `from`; nothing where the receiver has it already or the sender not yet.
    std::optional<std::int32_t> sent, taken;
};

/// All n - 1 + q rounds of member r, n >= 1 blocks, root 0. Every member but the root receives every block once. A
/// member sends only what it received in an earlier round. O(q (n + q)).
std::vector<CirculantRound> circulant_broadcast(std::int32_t p, std::int32_t n, std::int32_t r);

}  // namespace palmette::collectives
