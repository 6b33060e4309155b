#include "palmette/base/units.hpp"

#include <gmock/gmock.h>

#include "palmette/base/text.hpp"
#include "support/errors.hpp"

namespace palmette::base {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Units, sizes_are_powers_of_1024_with_any_spelling) {
    EXPECT_EQ(parse_size("64"), 64);
    EXPECT_EQ(parse_size(" 16K "), 16384);
    EXPECT_EQ(parse_size("1MiB"), 1 << 20);
    EXPECT_EQ(parse_size("2GB"), std::int64_t{2} << 30);
    EXPECT_EQ(parse_size("0.5k"), 512);
    EXPECT_EQ(parse_size("0"), 0);
}

TEST(Units, wrong_sizes_are_named_with_an_example) {
    EXPECT_EQ(error_of([] { parse_size("many"); }), "'many' is not a size: write it like 64, 16K or 1M");
    EXPECT_EQ(error_of([] { parse_size("5X"); }),
              "'5X' is not a size: unit 'X' is unknown; write it like 64, 16K or 1M");
    for (const char* text : {"-1", "", "1.5", "9e30", "K", "5T5"})
        EXPECT_NE(error_of([&] { parse_size(text); }), "no error") << text;
}

TEST(Units, rates_and_durations_are_powers_of_1000) {
    EXPECT_DOUBLE_EQ(parse_rate("100Mbit/s"), 12.5e6);
    EXPECT_DOUBLE_EQ(parse_rate("12.5GB/s"), 12.5e9);
    EXPECT_DOUBLE_EQ(parse_rate("1e9B/s"), 1e9);
    EXPECT_DOUBLE_EQ(parse_duration("5ms"), 5e-3);
    EXPECT_DOUBLE_EQ(parse_duration("800ns"), 800e-9);
    EXPECT_THAT(error_of([] { parse_rate("0Mbit/s"); }), HasSubstr("is none of 1 B/s to 1e18"));
    EXPECT_THAT(error_of([] { parse_rate("100"); }), HasSubstr("write it like 100Mbit/s"));
    EXPECT_THAT(error_of([] { parse_duration("5"); }), HasSubstr("write it like 5ms"));
}

TEST(Units, formatting_reads_back) {
    for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000}, std::int64_t{1024},
                                     std::int64_t{65536}, std::int64_t{3} << 30, (std::int64_t{1} << 40) + 1})
        EXPECT_EQ(parse_size(format_size(bytes)), bytes);
    EXPECT_EQ(format_size(65536), "64K");
    EXPECT_EQ(format_rate(12.5e6), "100 Mbit/s");
    EXPECT_EQ(format_duration(0.0132), "13.2 ms");
    EXPECT_EQ(format_duration(2.5e-6), "2.5 us");
}

TEST(Text, split_keeps_empty_parts_and_trim_cuts_both_ends) {
    EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
    EXPECT_THAT(split("", ','), ElementsAre());
    EXPECT_EQ(trim("\t a b \r\n"), "a b");
    EXPECT_EQ(trim("  "), "");
}

}  // namespace
}  // namespace palmette::base
