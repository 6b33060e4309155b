#include "palmette/collectives/tree_shape.hpp"

#include <gmock/gmock.h>

#include "support/errors.hpp"

namespace palmette::collectives {
namespace {

using testing::HasSubstr;

TEST(TreeShape, parents_children_and_subtrees_agree_for_every_radix_and_size) {
    for (const std::int32_t radix : {0, 2, 3, 4, 8, 50})
        for (std::int32_t n = 1; n <= 70; ++n) {
            const TreeShape shape{radix};
            for (std::int32_t member = 0; member < n; ++member) {
                const SubTree own = shape.subtree(member, n);
                ASSERT_EQ(own.first, member);
                std::int32_t below = 1;
                for (const SubTree& child : shape.children(member, n)) {
                    ASSERT_EQ(shape.parent(child.first), member) << "radix " << radix << ", n " << n;
                    const SubTree same = shape.subtree(child.first, n);
                    ASSERT_EQ(same.first, child.first);
                    ASSERT_EQ(same.count, child.count);
                    ASSERT_LE(child.first + child.count, own.first + own.count);
                    below += child.count;
                }
                ASSERT_EQ(below, own.count) << "radix " << radix << ", n " << n << ", member " << member;
            }
        }
}

TEST(TreeShape, the_largest_subtree_comes_first) {
    const TreeShape binomial{2};
    std::vector<std::int32_t> children;
    for (const SubTree& child : binomial.children(0, 8)) children.push_back(child.first);
    EXPECT_THAT(children, testing::ElementsAre(4, 2, 1));
}

TEST(TreeShape, names_read_back_and_others_are_refused) {
    for (const char* text : {"linear", "binomial", "k_nomial.3", "k_nomial.16"})
        EXPECT_EQ(TreeShape::parse(text).text(), text);
    for (const char* text : {"", "tree", "k_nomial", "k_nomial.", "k_nomial.1", "k_nomial.-2", "k_nomial.4x"})
        EXPECT_THAT(test::error_of([&] { TreeShape::parse(text); }),
                    HasSubstr("is no tree: there are linear, binomial and k_nomial.K"))
            << text;
}

}  // namespace
}  // namespace palmette::collectives
