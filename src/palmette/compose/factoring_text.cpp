#include "palmette/compose/factoring_text.hpp"

#include <charconv>

#include "palmette/base/error.hpp"

namespace palmette::compose {
namespace {

std::int32_t number(std::string_view word, std::string_view value) {
    std::int32_t out = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
    if (error != std::errc() || end != value.data() + value.size() || out < 1)
        base::fail("factoring: '", word, "': expected a number of 1 or more");
    return out;
}

}  // namespace

NamedFactoring parse_factoring(std::string_view text) {
    NamedFactoring out;
    for (const std::string_view word : base::split(text, ' ')) {
        if (word.empty()) continue;
        const auto equals = word.find('=');
        const std::string_view key = word.substr(0, equals);
        const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
        if (key == "hierarchy") {
            out.hierarchy = value;
        } else if (key == "method") {
            out.factoring.methods.clear();
            for (const std::string_view method : base::split(value, ','))
                out.factoring.methods.push_back(Method::parse(method));
        } else if (key == "stripes") {
            out.factoring.stripes = number(word, value);
        } else if (key == "pipeline") {
            out.factoring.pipeline = number(word, value);
        } else if (key == "landings") {
            out.factoring.landings = number(word, value);
        } else {
            base::fail("factoring: '", word,
                       "' is unknown; there are hierarchy=, method=, stripes=, pipeline= and landings=");
        }
    }
    return out;
}

}  // namespace palmette::compose
