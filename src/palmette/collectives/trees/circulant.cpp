#include "palmette/collectives/trees/circulant.hpp"

#include <algorithm>

namespace palmette::collectives {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

/// The smallest skip in the greedy decomposition of r into skips: the first block that r receives. q for the root.
std::int32_t base_block(const std::vector<std::int32_t>& skips, std::int32_t r) {
    const auto q = static_cast<std::int32_t>(skips.size()) - 1;
    for (std::int32_t k = q - 1; k >= 0; --k) {
        if (skips[at(k)] == r) return k;
        if (skips[at(k)] < r) r -= skips[at(k)];
    }
    return q;
}

/// Walks over sums of skips in descending order and picks, for round 0, 1, ..., the first one from which the block can
/// have arrived in time and whose block isn't assigned yet.
class Search {
  public:
    Search(const std::vector<std::int32_t>& skips, std::int32_t r)
        : skips_(skips), q_(static_cast<std::int32_t>(skips.size()) - 1), target_(std::int64_t{skips.back()} + r) {
        for (std::int32_t e = 0; e <= q_ + 1; ++e) next_.push_back(e - 1);
        for (std::int32_t e = 0; e <= q_; ++e) before_.push_back(e + 1);
        base_ = base_block(skips, r);
        unlink(base_);
        limit_ = 2 * std::int64_t{skips.back()};
        walk(0, next_[at(q_ + 1)]);
        // The root's block is the one that this member receives first.
        for (std::int32_t& block : found_) block = block == q_ ? base_ : block - q_;
    }
    std::vector<std::int32_t> found() && { return std::move(found_); }

  private:
    bool complete() const { return static_cast<std::int32_t>(found_.size()) == q_; }
    std::int64_t latest(std::size_t round) const { return target_ - skips_[round]; }
    void unlink(std::int32_t e) {
        next_[at(before_[at(e)])] = next_[at(e)];
        if (next_[at(e)] >= 0) before_[at(next_[at(e)])] = before_[at(e)];
    }

    /// All sums that begin with `sum` and go on with skip e or a smaller one.
    void walk(std::int64_t sum, std::int32_t e) {
        for (; e >= 0 && !complete(); e = next_[at(e)]) {
            const std::int64_t longer = sum + skips_[at(e)];
            if (longer > latest(found_.size()) || longer >= limit_) continue;
            if (longer <= latest(found_.size() + 1)) {
                walk(longer, e);
                if (complete()) return;
            }
            if (sum > latest(found_.size() + 1)) return;
            limit_ = longer;
            found_.push_back(e);
            unlink(e);
        }
    }

    const std::vector<std::int32_t>& skips_;
    std::int32_t q_;
    std::int64_t target_, limit_ = 0;
    std::int32_t base_ = 0;
    std::vector<std::int32_t> next_,
        before_;  ///< a list of the skips not used yet, the largest first; its head is q + 1
    std::vector<std::int32_t> found_;
};

}  // namespace

std::vector<std::int32_t> circulant_skips(std::int32_t p) {
    std::vector<std::int32_t> skips{p};
    while (skips.back() > 1) skips.push_back(skips.back() - skips.back() / 2);
    std::reverse(skips.begin(), skips.end());
    return skips;
}

std::vector<std::int32_t> circulant_recv_blocks(const std::vector<std::int32_t>& skips, std::int32_t r) {
    return Search(skips, r).found();
}

CirculantSchedule circulant_schedule(std::int32_t p, std::int32_t r) {
    const std::vector<std::int32_t> skips = circulant_skips(p);
    CirculantSchedule out;
    out.recv = circulant_recv_blocks(skips, r);
    for (std::size_t k = 0; k + 1 < skips.size(); ++k) {
        const auto peer = static_cast<std::int32_t>((std::int64_t{r} + skips[k]) % p);
        out.send.push_back(circulant_recv_blocks(skips, peer)[k]);
    }
    return out;
}

namespace {

/// The block that a member receives in each round of a broadcast of n blocks, or nothing.
std::vector<std::optional<std::int32_t>> received_blocks(const std::vector<std::int32_t>& skips, std::int32_t r,
                                                         std::int32_t n) {
    const auto q = static_cast<std::int32_t>(skips.size()) - 1;
    std::vector<std::optional<std::int32_t>> out(at(n - 1 + q));
    if (r == 0) return out;
    const std::vector<std::int32_t> first = circulant_recv_blocks(skips, r);
    // The last phase is complete, so the first one may begin in its middle.
    const std::int32_t skipped = (q - (n - 1) % q) % q;
    bool last = false;
    for (std::int32_t round = 0; round < n - 1 + q; ++round) {
        const std::int32_t k = (round + skipped) % q;
        const std::int32_t block = first[at(k)] + (round + skipped) / q * q - skipped;
        if (block < 0 || (block >= n - 1 && last)) continue;
        last = last || block >= n - 1;
        out[at(round)] = std::min(block, n - 1);
    }
    return out;
}

}  // namespace

std::vector<CirculantRound> circulant_broadcast(std::int32_t p, std::int32_t n, std::int32_t r) {
    if (p < 2) return {};
    const std::vector<std::int32_t> skips = circulant_skips(p);
    const auto q = static_cast<std::int32_t>(skips.size()) - 1;
    std::vector<CirculantRound> out(at(n - 1 + q));
    const auto mine = received_blocks(skips, r, n);
    const std::int32_t skipped = (q - (n - 1) % q) % q;
    for (std::int32_t k = 0; k < q; ++k) {
        const auto to = static_cast<std::int32_t>((std::int64_t{r} + skips[at(k)]) % p);
        const auto from = static_cast<std::int32_t>((std::int64_t{r} + p - skips[at(k)]) % p);
        const auto theirs = received_blocks(skips, to, n);
        for (std::int32_t round = (k - skipped + q) % q; round < n - 1 + q; round += q)
            out[at(round)] = {to, from, theirs[at(round)], mine[at(round)]};
    }
    return out;
}

}  // namespace palmette::collectives
