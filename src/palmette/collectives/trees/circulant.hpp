// Broadcast in blocks on a circulant graph: who sends which block to whom in which round, as arithmetic on one member.
//
// q = ceil(lg p). In round k (mod q) every member r sends to r + skip[k] and takes from r - skip[k], modulo p, where
// skip[q] = p and each skip is half of the next one, rounded up. p = 8, skips 1 2 4:
//
//     0 ──1──► 1      0 ──2──► 2      0 ──4──► 4        and the same from every other member at the same time
//
// The root 0 sends block 0 in the first round, block 1 in the second and so on; after n - 1 + q rounds all have all n
// blocks, which is the least number of rounds for any p. Träff: "Optimal, logarithmic time construction of
// round-optimal n-block broadcast schedules", arXiv 2312.11236 (2023); ACM TOPC 2025.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace palmette::collectives {

/// skip[0..q] for p >= 1 members, ascending, skip[q] = p; q = ceil(lg p).
std::vector<std::int32_t> circulant_skips(std::int32_t p);

/// What one member takes and sends in each of the q rounds of the first phase. An entry e of a later phase j stands for
/// block e + j q; a negative block is nothing.
struct CirculantSchedule {
    std::vector<std::int32_t> recv, send;
};

/// The blocks that member r (0 is the root) takes in the rounds of a phase: the blocks -1, ..., -q of the phase before,
/// but for one, and one of this phase. O(log p) visits.
std::vector<std::int32_t> circulant_recv_blocks(const std::vector<std::int32_t>& skips, std::int32_t r);
/// Both sides, O(log^2 p): what a member sends in a round is what its peer takes.
CirculantSchedule circulant_schedule(std::int32_t p, std::int32_t r);

/// One round of a broadcast of n blocks, as one member sees it.
struct CirculantRound {
    std::int32_t to = 0, from = 0;
    /// The block that goes to `to` or comes from `from`; nothing where that one has it already or it isn't there yet.
    std::optional<std::int32_t> sent, taken;
};

/// All n - 1 + q rounds of member r, n >= 1 blocks, root 0. Every member but the root takes every block once; the root
/// takes nothing. A member sends only what it took in an earlier round. O(q (n + q)).
std::vector<CirculantRound> circulant_broadcast(std::int32_t p, std::int32_t n, std::int32_t r);

}  // namespace palmette::collectives
