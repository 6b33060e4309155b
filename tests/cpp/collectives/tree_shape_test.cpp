#include "palmette/collectives/trees/tree_shape.hpp"

#include <gmock/gmock.h>

#include "support/errors.hpp"

namespace palmette::collectives {
namespace {

using testing::HasSubstr;

std::vector<TreeShape> every_shape() {
    std::vector<TreeShape> out;
    for (const std::int32_t radix : {0, 2, 3, 4, 8, 50}) out.push_back({radix});
    for (const std::int32_t radix : {1, 2, 3, 7, 50}) out.push_back(TreeShape::k_ary(radix));
    for (const std::int32_t latency : {1, 2, 5, 40}) out.push_back({latency, TreeShape::Kind::postal});
    return out;
}

TEST(TreeShape, parents_children_and_subtrees_agree_for_every_radix_and_size) {
    for (const TreeShape shape : every_shape())
        for (std::int32_t n = 1; n <= 70; ++n) {
            for (std::int32_t member = 0; member < n; ++member) {
                const SubTree own = shape.subtree(member, n);
                ASSERT_EQ(own.first, member);
                std::int32_t below = 1;
                for (const SubTree& child : shape.children(member, n)) {
                    ASSERT_EQ(shape.parent(child.first, n), member) << shape.text() << ", n " << n;
                    const SubTree same = shape.subtree(child.first, n);
                    ASSERT_EQ(same.first, child.first);
                    ASSERT_EQ(same.count, child.count);
                    ASSERT_LE(child.first + child.count, own.first + own.count);
                    below += child.count;
                }
                ASSERT_EQ(below, own.count) << shape.text() << ", n " << n << ", member " << member;
            }
        }
}

TEST(TreeShape, the_largest_subtree_comes_first) {
    const TreeShape binomial{2};
    std::vector<std::int32_t> children;
    for (const SubTree& child : binomial.children(0, 8)) children.push_back(child.first);
    EXPECT_THAT(children, testing::ElementsAre(4, 2, 1));
}

TEST(TreeShape, a_postal_tree_reaches_all_as_soon_as_any_can) {
    for (const std::int32_t latency : {1, 2, 3, 5})
        for (std::int32_t n = 1; n <= 150; ++n) {
            const TreeShape shape{latency, TreeShape::Kind::postal};
            std::vector<std::int32_t> informed(static_cast<std::size_t>(n), 0);
            std::int32_t last = 0;
            for (std::int32_t member = 0; member < n; ++member) {
                std::int32_t begun = informed[static_cast<std::size_t>(member)];
                for (const SubTree& child : shape.children(member, n)) {
                    informed[static_cast<std::size_t>(child.first)] = begun++ + latency;
                    last = std::max(last, informed[static_cast<std::size_t>(child.first)]);
                }
            }
            std::vector<std::int64_t> most{1};
            for (std::size_t t = 1; most.back() < n; ++t)
                most.push_back(most.back() + (t >= std::size_t(latency) ? most[t - std::size_t(latency)] : 0));
            ASSERT_EQ(last, static_cast<std::int32_t>(most.size()) - 1) << shape.text() << ", n " << n;
        }
}

TEST(TreeShape, a_k_ary_tree_is_as_shallow_and_as_even_as_k_children_each_allow) {
    for (const std::int32_t radix : {2, 3, 5})
        for (std::int32_t n = 1; n <= 200; ++n) {
            const TreeShape shape = TreeShape::k_ary(radix);
            std::int32_t deepest = 0;
            for (std::int32_t member = 0; member < n; ++member) {
                const auto children = shape.children(member, n);
                ASSERT_LE(children.size(), static_cast<std::size_t>(radix));
                for (const SubTree& child : children) ASSERT_LE(children.front().count - child.count, 1);
                std::int32_t depth = 0;
                for (auto above = shape.parent(member, n); above; above = shape.parent(*above, n)) ++depth;
                deepest = std::max(deepest, depth);
            }
            // A full tree of this depth with one member less on every path would be too small.
            std::int64_t full = 0;
            for (std::int64_t depth = 0, width = 1; depth < deepest; ++depth, width *= radix) full += width;
            ASSERT_LT(full, n) << "radix " << radix;
        }
}

TEST(TreeShape, a_chain_of_a_million_is_arithmetic) {
    const TreeShape chain = TreeShape::chain();
    EXPECT_EQ(chain.parent(999'999, 1'000'000), 999'998);
    EXPECT_EQ(chain.subtree(999'000, 1'000'000).count, 1000);
    EXPECT_EQ(chain.children(0, 1'000'000).size(), 1U);
}

TEST(TreeShape, shared_is_a_star_and_read_only_where_ranks_share_memory) {
    const TreeShape shared = TreeShape::parse("shared", true);
    EXPECT_TRUE(shared.shared && shared.is_star());
    EXPECT_EQ(shared.text(), "shared");
    EXPECT_THAT(test::error_of([] { TreeShape::parse("shared"); }), HasSubstr("'shared' is no tree"));
}

TEST(TreeShape, names_read_back_and_others_are_refused) {
    for (const char* text : {"linear", "binomial", "k_nomial.3", "k_nomial.16", "chain", "k_ary.2", "k_ary.9"})
        EXPECT_EQ(TreeShape::parse(text).text(), text);
    for (const char* text :
         {"", "tree", "k_nomial", "k_nomial.", "k_nomial.1", "k_nomial.-2", "k_nomial.4x", "k_ary.0", "k_ary"})
        EXPECT_THAT(
            test::error_of([&] { TreeShape::parse(text); }),
            HasSubstr(
                "is no tree: there are linear, binomial, k_nomial.K with K of at least 2, k_ary.K, postal.K and chain"))
            << text;
}

}  // namespace
}  // namespace palmette::collectives
