// Tree shapes (linear, k-nomial, k-ary, postal, chain) over members 0..n-1, rooted at 0, as pure arithmetic on one
// member.
//
//   linear, n = 8        0                binomial = k_nomial.2, n = 8       0
//            1 2 3 4 5 6 7                                                4  2  1
//                                                                        6 5  3
//                                                                        7
//   chain = k_ary.1      0 - 1 - 2 - ... - 7
//   k_ary.2, n = 8       0
//                     1     4
//                    2 3   5 6
//                            7
//   postal.2, n = 8      0           (N(t) = N(t-1) + N(t-2): informed members keep sending, one message per step)
//                    1   4  6 7
//                    2 3 5
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace palmette::collectives {

/// A subtree is always the members first..first+count-1, its root first.
struct SubTree {
    std::int32_t first = 0;
    std::int32_t count = 0;
};

/// Nomial with radix 0: linear, all others are children of the root. With radix k >= 2: the k-nomial tree (binomial for
/// 2), in which a member's parent is its number with the last non-zero digit in base k set to zero: fewest hops for
/// small vectors. Ary with radix k >= 1: the k-ary tree, in which every member has at most k children with subtrees as
/// equal as possible (a chain for 1): bounded fan-out, for pipelining of segments. Postal with radix L: the tree that
/// reaches n members first where a message arrives L times as late as its sender can begin the next one (Bar-Noy,
/// Kipnis, Mathematical Systems Theory 27(5), 1994); binomial for 1.
struct TreeShape {
    enum class Kind : std::uint8_t { nomial, ary, postal };

    std::int32_t radix = 0;
    Kind kind = Kind::nomial;
    bool shared = false;  ///< through shared memory: ranks of one node read the root's memory, or the root theirs

    /// linear, binomial, k_nomial.K, k_ary.K, postal.K, chain or, where `with_shared`, shared. Throws base::Error
    /// naming the text.
    static TreeShape parse(std::string_view text, bool with_shared = false);
    static constexpr TreeShape chain() { return {1, Kind::ary}; }
    static constexpr TreeShape k_ary(std::int32_t radix) { return {radix, Kind::ary}; }
    std::string text() const;

    /// All are children of the root.
    bool is_star() const { return kind == Kind::nomial && radix == 0; }

    /// The parent of a member among n, nothing for the root.
    std::optional<std::int32_t> parent(std::int32_t member, std::int32_t n) const;
    /// Members below and including `member` among n.
    SubTree subtree(std::int32_t member, std::int32_t n) const;
    /// Children with their subtrees, the largest first (a k-ary tree's are equal but for one member).
    std::vector<SubTree> children(std::int32_t member, std::int32_t n) const;
};

}  // namespace palmette::collectives
