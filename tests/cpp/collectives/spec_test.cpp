#include "palmette/collectives/spec.hpp"

#include <gmock/gmock.h>

#include "support/errors.hpp"

namespace palmette::collectives {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(Spec, text_reads_back) {
    for (const char* text :
         {"ring", "k_nomial:radix=4", "by_topology:node=linear,leaf=k_nomial.4,top=linear,segment=64K"})
        EXPECT_EQ(Spec::parse(text).text(), text);
    EXPECT_EQ(Spec::parse("  k_nomial: radix = 4 , order =rank ").text(), "k_nomial:radix=4,order=rank");
}

TEST(Spec, mistakes_name_the_part_at_fault) {
    EXPECT_THAT(error_of([] { Spec::parse(""); }),
                HasSubstr("has no name; 'palmette plan --list' prints those that there are"));
    EXPECT_THAT(error_of([] { Spec::parse(":radix=2"); }), HasSubstr("has no name"));
    EXPECT_THAT(error_of([] { Spec::parse("ring:nested"); }), HasSubstr("'nested' is not KEY=VALUE"));
    EXPECT_THAT(error_of([] { Spec::parse("ring:=no"); }), HasSubstr("'=no' is not KEY=VALUE"));
    EXPECT_THAT(error_of([] { Spec::parse("k_nomial:radix=2,radix=3"); }), HasSubstr("key 'radix' stands twice"));
}

TEST(Spec, values_are_checked_when_they_are_read) {
    const Spec spec = Spec::parse("x:radix=two,leaders=0,segment=0,order=random,size=64K");
    EXPECT_THAT(error_of([&] { spec.integer("radix", 2, 2); }),
                HasSubstr("radix must be a whole number of at least 2, not 'two'"));
    EXPECT_THAT(error_of([&] { spec.integer("leaders", 1); }), HasSubstr("at least 1, not '0'"));
    EXPECT_THAT(error_of([&] { spec.size("segment", 0); }), HasSubstr("segment must be at least one byte"));
    EXPECT_THAT(error_of([&] { spec.word("order", {"topology", "rank"}); }),
                HasSubstr("order is one of topology, rank, not 'random'"));
    EXPECT_EQ(spec.size("size", 0), 65536);
    EXPECT_EQ(spec.integer("absent", 7), 7);
    EXPECT_EQ(spec.word("absent", {"first", "second"}), "first");
}

}  // namespace
}  // namespace palmette::collectives
