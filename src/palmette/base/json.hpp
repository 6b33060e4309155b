// JSON in and out, for the few files that the C++ side shares with the tools. docs/decisions/0001 says why it is our
// own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace palmette::base {

/// One JSON value. Object members keep the order in which they were written.
class Json {
  public:
    enum class Kind { null, boolean, number, string, array, object };
    using Members = std::vector<std::pair<std::string, Json>>;

    Json() = default;
    Json(bool value) : kind_(Kind::boolean), number_(value) {}
    Json(double value) : kind_(Kind::number), number_(value) {}
    Json(std::int64_t value) : kind_(Kind::number), number_(static_cast<double>(value)) {}
    Json(int value) : Json(static_cast<std::int64_t>(value)) {}
    Json(std::string value) : kind_(Kind::string), text_(std::move(value)) {}
    Json(std::string_view value) : Json(std::string(value)) {}
    Json(const char* value) : Json(std::string(value)) {}
    static Json array() { return Json(Kind::array); }
    static Json object() { return Json(Kind::object); }

    /// Parses a whole text. Throws Error naming line and column; depth is limited to 200 levels.
    static Json parse(std::string_view text);
    /// Reads and parses a file. Throws Error naming the file.
    static Json parse_file(const std::string& path);

    Kind kind() const { return kind_; }
    bool is_object() const { return kind_ == Kind::object; }
    bool is_array() const { return kind_ == Kind::array; }

    /// Typed access; `where` is the path that an Error names when the type is another one.
    bool boolean(std::string_view where) const;
    double number(std::string_view where) const;
    std::int64_t integer(std::string_view where) const;
    const std::string& string(std::string_view where) const;
    const std::vector<Json>& items(std::string_view where) const;
    const Members& members(std::string_view where) const;

    /// The member of that name, or null when there is none or this is no object.
    const Json* find(std::string_view name) const;

    Json& set(std::string name, Json value);
    Json& push(Json value);

    /// indent 0: one line; otherwise one member a line.
    std::string dump(int indent = 0) const;

  private:
    explicit Json(Kind kind) : kind_(kind) {}
    void write(std::string& out, int indent, int depth) const;

    Kind kind_ = Kind::null;
    double number_ = 0;
    std::string text_;
    std::vector<Json> items_;
    Members members_;
};

}  // namespace palmette::base
