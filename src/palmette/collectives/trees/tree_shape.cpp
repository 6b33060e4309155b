#include "palmette/collectives/trees/tree_shape.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

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

/// K in NAME.K, at least `least`.
std::optional<std::int32_t> radix_after(std::string_view name, std::string_view text, std::int32_t least) {
    if (!text.starts_with(name)) return std::nullopt;
    const std::string_view digits = text.substr(name.size());
    std::int32_t radix = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), radix);
    if (error != std::errc() || end != digits.data() + digits.size() || radix < least) return std::nullopt;
    return radix;
}

/// Child subtree `part` of the root of a k-ary subtree.
SubTree part_below(SubTree tree, std::int64_t parts, std::int64_t part) {
    const std::int64_t rest = tree.count - 1;
    const std::int64_t begin = rest * part / parts;
    return {static_cast<std::int32_t>(tree.first + 1 + begin),
            static_cast<std::int32_t>(rest * (part + 1) / parts - begin)};
}
std::int64_t parts_of(SubTree tree, std::int32_t radix) { return std::min<std::int64_t>(radix, tree.count - 1); }

/// Children of a postal tree's root: the receiver of the j-th message gets a subtree as large as it can reach in the
/// remaining time.
std::vector<SubTree> postal_parts(SubTree tree, std::int32_t latency) {
    std::vector<std::int64_t> reach{1};
    while (reach.back() < tree.count) {
        const std::size_t t = reach.size();
        reach.push_back(reach.back() +
                        (t >= static_cast<std::size_t>(latency) ? reach[t - static_cast<std::size_t>(latency)] : 0));
    }
    std::vector<SubTree> out;
    std::int32_t next = tree.first + 1;
    for (std::size_t left = reach.size() - 1; next < tree.first + tree.count; --left) {
        const std::int64_t most = reach[left - static_cast<std::size_t>(latency)];
        out.push_back({next, static_cast<std::int32_t>(std::min<std::int64_t>(most, tree.first + tree.count - next))});
        next += out.back().count;
    }
    return out;
}

std::pair<SubTree, std::int32_t> locate_postal(std::int32_t member, std::int32_t n, std::int32_t latency) {
    SubTree tree{0, n};
    std::int32_t above = -1;
    while (tree.first != member) {
        above = tree.first;
        const std::vector<SubTree> parts = postal_parts(tree, latency);
        tree = *std::find_if(parts.begin(), parts.end(),
                             [&](const SubTree& part) { return member < part.first + part.count; });
    }
    return {tree, above};
}

/// The k-ary subtree of a member and the member above it, by walking down from the root: log_k n iterations, one for a
/// chain.
std::pair<SubTree, std::int32_t> locate(std::int32_t member, std::int32_t n, std::int32_t radix) {
    if (radix == 1) return {{member, n - member}, member - 1};
    SubTree tree{0, n};
    std::int32_t above = -1;
    while (tree.first != member) {
        above = tree.first;
        const std::int64_t parts = parts_of(tree, radix);
        const std::int64_t offset = member - tree.first;
        tree = part_below(tree, parts, (offset * parts - 1) / (tree.count - 1));
    }
    return {tree, above};
}

}  // namespace

TreeShape TreeShape::parse(std::string_view text, bool with_shared) {
    if (text == "linear") return {0};
    if (text == "binomial") return {2};
    if (text == "chain") return chain();
    if (const auto radix = radix_after("k_nomial.", text, 2)) return {*radix};
    if (const auto radix = radix_after("k_ary.", text, 1)) return k_ary(*radix);
    if (const auto latency = radix_after("postal.", text, 1)) return {*latency, Kind::postal};
    if (with_shared && text == "shared") return {0, Kind::nomial, true};
    base::fail("'", text,
               "' is no tree: there are linear, binomial, k_nomial.K with K of at least 2, k_ary.K, postal.K",
               with_shared ? ", chain and, for levels inside of a node, shared" : " and chain");
}

std::string TreeShape::text() const {
    if (shared) return "shared";
    if (kind == Kind::postal) return base::cat("postal.", radix);
    if (kind == Kind::ary) return radix == 1 ? "chain" : base::cat("k_ary.", radix);
    return radix == 0 ? "linear" : radix == 2 ? "binomial" : base::cat("k_nomial.", radix);
}

std::optional<std::int32_t> TreeShape::parent(std::int32_t member, std::int32_t n) const {
    if (member == 0) return std::nullopt;
    if (kind == Kind::ary) return locate(member, n, radix).second;
    if (kind == Kind::postal) return locate_postal(member, n, radix).second;
    if (radix == 0) return 0;
    const std::int64_t weight = lowest_weight(member, radix, 0);
    return static_cast<std::int32_t>(member - member / weight % radix * weight);
}

SubTree TreeShape::subtree(std::int32_t member, std::int32_t n) const {
    if (member == 0) return {0, n};
    if (kind == Kind::ary) return locate(member, n, radix).first;
    if (kind == Kind::postal) return locate_postal(member, n, radix).first;
    if (radix == 0) return {member, 1};
    return {member, static_cast<std::int32_t>(std::min<std::int64_t>(lowest_weight(member, radix, n), n - member))};
}

std::vector<SubTree> TreeShape::children(std::int32_t member, std::int32_t n) const {
    if (kind == Kind::postal) return postal_parts(subtree(member, n), radix);
    std::vector<SubTree> out;
    if (kind == Kind::ary) {
        const SubTree own = subtree(member, n);
        const std::int64_t parts = parts_of(own, radix);
        for (std::int64_t part = 0; part < parts; ++part) out.push_back(part_below(own, parts, part));
        return out;
    }
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
