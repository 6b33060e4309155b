#include "palmette/base/json.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "palmette/base/error.hpp"
#include "palmette/base/files.hpp"

namespace palmette::base {
namespace {

constexpr int max_depth = 200;

class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text) {}

    Json whole() {
        Json value = parse_value(0);
        skip_space();
        if (at_ != text_.size()) complain("nothing more after the value");
        return value;
    }

  private:
    [[noreturn]] void complain(std::string_view expected) const {
        std::size_t line = 1, column = 1;
        for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) {
            if (text_[i] == '\n') {
                ++line;
                column = 1;
            } else {
                ++column;
            }
        }
        fail("line ", line, ", column ", column, ": expected ", expected);
    }

    void skip_space() {
        while (at_ < text_.size() &&
               (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
            ++at_;
    }

    bool take(char wanted) {
        skip_space();
        if (at_ >= text_.size() || text_[at_] != wanted) return false;
        ++at_;
        return true;
    }

    bool take_word(std::string_view word) {
        if (text_.substr(at_, word.size()) != word) return false;
        at_ += word.size();
        return true;
    }

    Json parse_value(int depth) {
        if (depth > max_depth) complain("no more than 200 nested values");
        skip_space();
        if (at_ >= text_.size()) complain("a value");
        switch (text_[at_]) {
            case '{':
                return parse_object(depth);
            case '[':
                return parse_array(depth);
            case '"':
                return Json(parse_string());
            default:
                break;
        }
        if (take_word("true")) return Json(true);
        if (take_word("false")) return Json(false);
        if (take_word("null")) return Json();
        return parse_number();
    }

    Json parse_number() {
        double value = 0;
        const char first = text_[at_];
        if (first != '-' && (first < '0' || first > '9')) complain("a value");
        const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        if (error != std::errc() || !std::isfinite(value)) complain("a number");
        at_ = static_cast<std::size_t>(end - text_.data());
        return Json(value);
    }

    Json parse_array(int depth) {
        Json out = Json::array();
        ++at_;
        if (take(']')) return out;
        do out.push(parse_value(depth + 1));
        while (take(','));
        if (!take(']')) complain("',' or ']'");
        return out;
    }

    Json parse_object(int depth) {
        Json out = Json::object();
        ++at_;
        if (take('}')) return out;
        do {
            skip_space();
            if (at_ >= text_.size() || text_[at_] != '"') complain("a member's name in quotes");
            std::string name = parse_string();
            if (!take(':')) complain("':'");
            out.set(std::move(name), parse_value(depth + 1));
        } while (take(','));
        if (!take('}')) complain("',' or '}'");
        return out;
    }

    unsigned parse_hex4() {
        unsigned code = 0;
        if (at_ + 4 > text_.size()) complain("four hexadecimal digits");
        const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, code, 16);
        if (error != std::errc() || end != text_.data() + at_ + 4) complain("four hexadecimal digits");
        at_ += 4;
        return code;
    }

    void append_utf8(std::string& out, unsigned code) const {
        const auto put = [&out](unsigned byte) { out.push_back(static_cast<char>(byte)); };
        if (code < 0x80) {
            put(code);
        } else if (code < 0x800) {
            put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
        } else if (code < 0x10000) {
            put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
        } else {
            put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)),
                put(0x80 | (code & 0x3F));
        }
    }

    std::string parse_string() {
        std::string out;
        ++at_;
        for (;;) {
            // What stands for itself, at once.
            std::size_t end = at_;
            while (end < text_.size() && text_[end] != '"' && text_[end] != '\\' &&
                   static_cast<unsigned char>(text_[end]) >= 0x20)
                ++end;
            out.append(text_, at_, end - at_);
            at_ = end;
            if (at_ >= text_.size()) complain("the end of a string");
            const char c = text_[at_++];
            if (c == '"') return out;
            if (c != '\\') {
                if (static_cast<unsigned char>(c) < 0x20) complain("no control character in a string");
                out.push_back(c);
                continue;
            }
            if (at_ >= text_.size()) complain("an escaped character");
            switch (const char escaped = text_[at_++]) {
                case '"':
                case '\\':
                case '/':
                    out.push_back(escaped);
                    break;
                case 'b':
                    out.push_back('\b');
                    break;
                case 'f':
                    out.push_back('\f');
                    break;
                case 'n':
                    out.push_back('\n');
                    break;
                case 'r':
                    out.push_back('\r');
                    break;
                case 't':
                    out.push_back('\t');
                    break;
                case 'u': {
                    unsigned code = parse_hex4();
                    if (code >= 0xD800 && code < 0xDC00 && take_word("\\u"))
                        code = 0x10000 + ((code - 0xD800) << 10) + (parse_hex4() & 0x3FF);
                    append_utf8(out, code);
                    break;
                }
                default:
                    complain("a known escape");
            }
        }
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

void write_string(std::string& out, std::string_view text) {
    out.push_back('"');
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out.push_back('\\');
            out.push_back(c);
        } else if (static_cast<unsigned char>(c) < 0x20) {
            std::array<char, 8> escaped{};
            std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(c));
            out += escaped.data();
        } else {
            out.push_back(c);
        }
    }
    out.push_back('"');
}

void write_number(std::string& out, double value) {
    std::array<char, 40> text{};
    if (value == std::floor(value) && std::abs(value) < 0x1p53)
        std::snprintf(text.data(), text.size(), "%.0f", value);
    else
        std::to_chars(text.data(), text.data() + text.size(), value);  // the fewest digits that read as the same
    out += text.data();
}

constexpr std::array<std::string_view, 6> kind_names{"null",     "a boolean", "a number",
                                                     "a string", "a list",    "an object"};

[[noreturn]] void wrong_kind(std::string_view where, std::string_view wanted, Json::Kind kind) {
    fail(where, ": expected ", wanted, ", found ", kind_names[static_cast<std::size_t>(kind)]);
}

}  // namespace

Json Json::parse(std::string_view text) {
    if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
    return Parser(text).whole();
}

Json Json::parse_file(const std::string& path) {
    const std::string text = read_file(path);
    try {
        return parse(text);
    } catch (const Error& error) {
        fail(path, ": ", error.what());
    }
}

bool Json::boolean(std::string_view where) const {
    if (kind_ != Kind::boolean) wrong_kind(where, "true or false", kind_);
    return number_ != 0;
}

double Json::number(std::string_view where) const {
    if (kind_ != Kind::number) wrong_kind(where, "a number", kind_);
    return number_;
}

std::int64_t Json::integer(std::string_view where) const {
    const double value = number(where);
    if (value != std::floor(value) || std::abs(value) > 0x1p53) fail(where, ": expected a whole number, found ", value);
    return static_cast<std::int64_t>(value);
}

const std::string& Json::string(std::string_view where) const {
    if (kind_ != Kind::string) wrong_kind(where, "a string", kind_);
    return text_;
}

const std::vector<Json>& Json::items(std::string_view where) const {
    if (kind_ != Kind::array) wrong_kind(where, "a list", kind_);
    return items_;
}

const Json::Members& Json::members(std::string_view where) const {
    if (kind_ != Kind::object) wrong_kind(where, "an object", kind_);
    return members_;
}

const Json* Json::find(std::string_view name) const {
    for (const auto& [member, value] : members_)
        if (member == name) return &value;
    return nullptr;
}

Json& Json::set(std::string name, Json value) {
    if (members_.empty()) members_.reserve(4);
    members_.emplace_back(std::move(name), std::move(value));
    return *this;
}

Json& Json::push(Json value) {
    items_.push_back(std::move(value));
    return *this;
}

void Json::write(std::string& out, int indent, int depth) const {
    const auto line = [&](int at) {
        if (indent > 0) {
            out.push_back('\n');
            out.append(static_cast<std::size_t>(indent * at), ' ');
        }
    };
    switch (kind_) {
        case Kind::null:
            out += "null";
            break;
        case Kind::boolean:
            out += number_ != 0 ? "true" : "false";
            break;
        case Kind::number:
            write_number(out, number_);
            break;
        case Kind::string:
            write_string(out, text_);
            break;
        case Kind::array: {
            out.push_back('[');
            bool first = true;
            for (const Json& item : items_) {
                if (!first) out += indent > 0 ? "," : ", ";
                first = false;
                line(depth + 1);
                item.write(out, indent, depth + 1);
            }
            if (!items_.empty()) line(depth);
            out.push_back(']');
            break;
        }
        case Kind::object: {
            out.push_back('{');
            bool first = true;
            for (const auto& [name, value] : members_) {
                if (!first) out += indent > 0 ? "," : ", ";
                first = false;
                line(depth + 1);
                write_string(out, name);
                out += ": ";
                value.write(out, indent, depth + 1);
            }
            if (!members_.empty()) line(depth);
            out.push_back('}');
            break;
        }
    }
}

std::string Json::dump(int indent) const {
    std::string out;
    write(out, indent, 0);
    return out;
}

}  // namespace palmette::base
