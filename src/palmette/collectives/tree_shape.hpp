// Trees over members 0..n-1 with member 0 as the root, as pure arithmetic on one member.
//
//   linear, n = 8        0                binomial = k_nomial.2, n = 8       0
//            1 2 3 4 5 6 7                                                4  2  1
//                                                                        6 5  3
//                                                                        7
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

/// radix 0: linear, all others are children of the root. radix k >= 2: the k-nomial tree (binomial for 2), in which a
/// member's parent is its number with the last non-zero digit in base k set to zero.
struct TreeShape {
    std::int32_t radix = 0;

    /// linear, binomial or k_nomial.K. Throws base::Error naming the text.
    static TreeShape parse(std::string_view text);
    std::string text() const;

    /// The parent of a member, nothing for the root.
    std::optional<std::int32_t> parent(std::int32_t member) const;
    /// Members below and including `member` among n.
    SubTree subtree(std::int32_t member, std::int32_t n) const;
    /// Children with their subtrees, the largest first.
    std::vector<SubTree> children(std::int32_t member, std::int32_t n) const;
};

}  // namespace palmette::collectives
