#include "palmette/collectives/tree_shape.hpp"

#include <algorithm>
#include <charconv>

#include "palmette/base/error.hpp"

namespace palmette::collectives {
namespace {

/// The weight of the last non-zero digit of `member` in base `radix`; for 0 the first power that reaches n.
std::int64_t lowest_weight(std::int32_t member, std::int32_t radix, std::int32_t n) {
    std::int64_t weight = 1;
    if (member == 0) {
        while (weight < n) weight *= radix;
        return weight;
    }
    while (member / weight % radix == 0) weight *= radix;
    return weight;
}

}  // namespace

TreeShape TreeShape::parse(std::string_view text) {
    if (text == "linear") return {0};
    if (text == "binomial") return {2};
    if (text.starts_with("k_nomial.")) {
        const std::string_view digits = text.substr(9);
        std::int32_t radix = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), radix);
        if (error == std::errc() && end == digits.data() + digits.size() && radix >= 2) return {radix};
    }
    base::fail("'", text, "' is no tree: there are linear, binomial and k_nomial.K with K of at least 2");
}

std::string TreeShape::text() const {
    return radix == 0 ? "linear" : radix == 2 ? "binomial" : base::cat("k_nomial.", radix);
}

std::optional<std::int32_t> TreeShape::parent(std::int32_t member) const {
    if (member == 0) return std::nullopt;
    if (radix == 0) return 0;
    const std::int64_t weight = lowest_weight(member, radix, 0);
    return static_cast<std::int32_t>(member - member / weight % radix * weight);
}

SubTree TreeShape::subtree(std::int32_t member, std::int32_t n) const {
    if (member == 0) return {0, n};
    if (radix == 0) return {member, 1};
    return {member, static_cast<std::int32_t>(std::min<std::int64_t>(lowest_weight(member, radix, n), n - member))};
}

std::vector<SubTree> TreeShape::children(std::int32_t member, std::int32_t n) const {
    std::vector<SubTree> out;
    if (radix == 0) {
        if (member == 0)
            for (std::int32_t child = 1; child < n; ++child) out.push_back({child, 1});
        return out;
    }
    for (std::int64_t weight = lowest_weight(member, radix, n) / radix; weight >= 1; weight /= radix)
        for (std::int64_t digit = 1; digit < radix; ++digit) {
            const std::int64_t child = member + digit * weight;
            if (child < n)
                out.push_back(
                    {static_cast<std::int32_t>(child), static_cast<std::int32_t>(std::min(weight, n - child))});
        }
    return out;
}

}  // namespace palmette::collectives
