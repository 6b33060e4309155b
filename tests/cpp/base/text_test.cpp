#include "palmette/base/text.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <limits>

namespace palmette::base {
namespace {

template <class Value>
void expect_as_a_stream_prints_it(const Value& value) {
    std::ostringstream out;
    out << value;
    EXPECT_EQ(cat(value), out.str());
}

TEST(Text, numbers_are_joined_as_a_stream_prints_them) {
    for (const double value : {0.0, -0.0, 1.0, 0.5, 1.0 / 3, 100000.0, 1e6, 1234567.0, 1e-4, 1.5e-5, -2.25, 1e300,
                               std::numeric_limits<double>::infinity()}) {
        expect_as_a_stream_prints_it(value);
        expect_as_a_stream_prints_it(static_cast<float>(value));
    }
    for (const std::int64_t value : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, INT64_MAX})
        expect_as_a_stream_prints_it(value);
    expect_as_a_stream_prints_it(UINT64_MAX);
    expect_as_a_stream_prints_it(std::int16_t{-32768});
}

TEST(Text, letters_truths_and_texts_are_joined_as_a_stream_prints_them) {
    expect_as_a_stream_prints_it('x');
    expect_as_a_stream_prints_it(std::uint8_t{'u'});
    expect_as_a_stream_prints_it(true);
    expect_as_a_stream_prints_it("a literal");
    expect_as_a_stream_prints_it(std::string(300, 'l'));
    EXPECT_EQ(cat("rank ", 3, " of ", std::string_view("all"), '.'), "rank 3 of all.");
    EXPECT_EQ(cat(), "");
}

TEST(Text, numbers_have_as_many_digits_as_asked_for) {
    EXPECT_EQ(number_text(2.0 / 3, 4), "0.6667");
    EXPECT_EQ(number_text(123456, 4), "1.235e+05");
    EXPECT_EQ(number_text(2, 4), "2");
}

TEST(Text, of_others_is_made_fit_for_a_line) {
    EXPECT_EQ(printable("plain, \xc3\xa9 and \xe2\x82\xac"), "plain, \xc3\xa9 and \xe2\x82\xac");
    EXPECT_EQ(printable("a\tb\x1b[2J\x7f"), "a\\x09b\\x1b[2J\\x7f");
    EXPECT_EQ(printable("\xff\xc3(\xed\xa0\x80\xf5"), "\\xff\\xc3(\\xed\\xa0\\x80\\xf5");
    std::string word(5000, 'x');
    word.append(" end");
    EXPECT_EQ(printable(word, 10), "xxxxxxxxxx... end");
}

}  // namespace
}  // namespace palmette::base
