#include "palmette/compose/hierarchy.hpp"

#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::compose {
namespace {

using test::error_of;

std::vector<std::int32_t> sizes(const Tree& tree, std::size_t level) {
    std::vector<std::int32_t> out;
    const Partition& groups = tree.levels.at(level).groups;
    for (std::int32_t g = 0; g < groups.count(); ++g) out.push_back(groups.size_of(g));
    return out;
}

TEST(Hierarchy, has_groups_of_the_numbers_given) {
    const Tree tree = Tree::of(job_of_hierarchy("3:8", 24));
    ASSERT_EQ(tree.depth(), 2u);
    EXPECT_EQ(sizes(tree, 0), (std::vector{8, 8, 8}));
    EXPECT_EQ(tree.levels[1].groups.count(), 24);
}

TEST(Hierarchy, has_uneven_groups_at_any_level) {
    const Tree tree = Tree::of(job_of_hierarchy("2:1+2:3+2+4", 9));
    ASSERT_EQ(tree.depth(), 3u);
    EXPECT_EQ(sizes(tree, 0), (std::vector{3, 6}));
    EXPECT_EQ(sizes(tree, 1), (std::vector{3, 2, 4}));
}

TEST(Hierarchy, of_one_number_is_flat) {
    const Tree tree = Tree::of(job_of_hierarchy("5", 5));
    ASSERT_EQ(tree.depth(), 1u);
    EXPECT_EQ(tree.levels[0].groups.count(), 5);
}

TEST(Hierarchy, that_does_not_fit_says_what_does) {
    EXPECT_EQ(error_of([] { job_of_hierarchy("3:8", 23); }),
              "hierarchy '3:8' makes 24 ranks where there are 23; 3:8+8+7 fits");
    EXPECT_EQ(error_of([] { job_of_hierarchy("3:7", 24); }),
              "hierarchy '3:7' makes 21 ranks where there are 24; 3:8 fits");
    EXPECT_EQ(error_of([] { job_of_hierarchy("2:3+4+5", 12); }),
              "hierarchy '2:3+4+5': level 2 lists 3 groups where the level above has 2; give one number for all, or 2 "
              "joined by +");
    EXPECT_EQ(error_of([] { job_of_hierarchy("2:x", 12); }), "hierarchy '2:x': 'x' is no number of 1 or more");
    EXPECT_EQ(error_of([] { job_of_hierarchy("0:3", 12); }), "hierarchy '0:3': '0' is no number of 1 or more");
}

TEST(Hierarchy, of_a_machine_has_the_levels_that_tell_its_ranks_apart) {
    const Tree tree = Tree::of(test::job_on("2leaf:2node:3core"));
    ASSERT_EQ(tree.depth(), 3u);
    EXPECT_EQ(tree.levels[0].name, "leaf");
    EXPECT_EQ(sizes(tree, 1), (std::vector{3, 3, 3, 3}));
}

TEST(Method, is_read_as_it_is_written) {
    for (const char* text :
         {"direct", "ring", "tree.2", "tree.5/3", "ring/4", "ring/2@copy", "direct@copy", "tree.3/1@ipc", "ring@nccl"})
        EXPECT_EQ(Method::parse(text).text(), text);
    EXPECT_EQ(Method::parse("tree/all").text(), "tree.2");
    EXPECT_EQ(error_of([] { Method::parse("ring.3"); }),
              "method 'ring.3': only a tree has a radix, of 2 or more: tree.4");
    EXPECT_EQ(error_of([] { Method::parse("star"); }),
              "method 'star': expected direct, tree, tree.K or ring, with /LANES where not all ranks talk, and @copy "
              "for single copies, @ipc for copies between devices or @nccl");
    EXPECT_EQ(error_of([] { Method::parse("ring@xpc"); }),
              "method 'ring@xpc': transport 'xpc': expected copy, ipc, nccl or messages");
    EXPECT_EQ(error_of([] { Method::parse("ring/0"); }), "method 'ring/0': '0' is no number of 1 or more");
}

}  // namespace
}  // namespace palmette::compose
