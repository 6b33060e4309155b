#include "palmette/base/json.hpp"

#include <gmock/gmock.h>

#include "support/errors.hpp"

namespace palmette::base {
namespace {

using test::error_of;
using testing::HasSubstr;

std::string complaint_about(std::string_view text) {
    return error_of([&] { Json::parse(text); });
}

TEST(Json, keeps_what_was_written_and_the_order_of_members) {
    const std::string text = R"({"b": [1, 2.5, -3e10, true, false, null], "a": {"empty": {}, "list": []}, "s": "x"})";
    EXPECT_EQ(Json::parse(text).dump(),
              R"({"b": [1, 2.5, -30000000000, true, false, null], "a": {"empty": {}, "list": []}, "s": "x"})");
}

TEST(Json, reads_back_what_it_writes_with_and_without_indent) {
    const Json json =
        Json::parse(R"({"rate": 12121212121.212122, "tiny": 2e-06, "names": ["n1", "n2"], "deep": [[[{}]]]})");
    EXPECT_EQ(Json::parse(json.dump()).dump(), json.dump());
    EXPECT_EQ(Json::parse(json.dump(2)).dump(), json.dump());
    EXPECT_THAT(json.dump(2), HasSubstr("\n  \"names\": [\n    \"n1\""));
}

TEST(Json, reads_escapes_and_writes_control_characters_escaped) {
    const Json json = Json::parse(R"("tab\t quote\" slash\/ e\u00e9 pair\ud83d\ude00 nul\u0001")");
    EXPECT_EQ(json.string("x"), "tab\t quote\" slash/ e\u00e9 pair\U0001F600 nul\x01");
    EXPECT_EQ(Json(std::string("a\"b\\c\n")).dump(), R"("a\"b\\c\u000a")");
}

TEST(Json, skips_a_byte_order_mark) { EXPECT_EQ(Json::parse("\xEF\xBB\xBF{\"a\": 1}").find("a")->integer("a"), 1); }

TEST(Json, names_line_and_column_of_a_mistake) {
    EXPECT_EQ(complaint_about("{\n  \"a\": 1,\n  \"b\" 2\n}"), "line 3, column 7: expected ':'");
    EXPECT_EQ(complaint_about("[1, 2"), "line 1, column 6: expected ',' or ']'");
    EXPECT_EQ(complaint_about("[1,]"), "line 1, column 4: expected a value");
    EXPECT_EQ(complaint_about("{\"a\": 1} x"), "line 1, column 10: expected nothing more after the value");
    EXPECT_EQ(complaint_about(""), "line 1, column 1: expected a value");
}

TEST(Json, refuses_what_json_does_not_have) {
    for (const char* text :
         {"nan", "+1", "'a'", "{a: 1}", "[1 2]", "tru", "\"open", "\"\\x\"", "\"\\u12g4\"", "1e999", "\"a\nb\""})
        EXPECT_THAT(complaint_about(text), HasSubstr("expected")) << text;
}

TEST(Json, limits_depth_instead_of_running_out_of_stack) {
    EXPECT_THAT(complaint_about(std::string(100'000, '[')), HasSubstr("no more than 200 nested values"));
    EXPECT_EQ(complaint_about(std::string(150, '[') + std::string(150, ']')), "no error");
}

TEST(Json, says_what_it_found_in_place_of_the_wanted_kind) {
    const Json json = Json::parse(R"({"levels": 3, "half": 0.5})");
    EXPECT_EQ(error_of([&] { json.find("levels")->string("machine.levels"); }),
              "machine.levels: expected a string, found a number");
    EXPECT_EQ(error_of([&] { json.find("half")->integer("count"); }), "count: expected a whole number, found 0.5");
    EXPECT_EQ(json.find("missing"), nullptr);
    EXPECT_EQ(Json(1).find("a"), nullptr);
}

TEST(Json, writes_the_fewest_digits_that_read_as_the_same_number) {
    for (const char* text :
         {"0.1", "2.5", "-0.0398161", "0.30000000000000004", "1e-05", "1.5e+300", "9007199254740991"})
        EXPECT_EQ(Json::parse(text).dump(), text);
    EXPECT_EQ(Json(5e-324).dump(), "5e-324");
    EXPECT_EQ(Json::parse(Json(2.0 / 3).dump()).number("it"), 2.0 / 3);
}

TEST(Json, names_the_file_that_is_missing_or_broken) {
    EXPECT_EQ(error_of([] { Json::parse_file("no/such/file.json"); }),
              "no/such/file.json: can't be read (No such file or directory); check the path and its permissions");
}

}  // namespace
}  // namespace palmette::base
