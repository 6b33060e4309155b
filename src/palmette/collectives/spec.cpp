#include "palmette/collectives/spec.hpp"

#include <algorithm>
#include <charconv>

#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"

namespace palmette::collectives {

using base::fail;

Spec Spec::parse(std::string_view text) {
    const std::string_view whole = base::trim(text);
    Spec spec;
    const std::size_t colon = whole.find(':');
    spec.name = base::trim(whole.substr(0, colon));
    if (spec.name.empty())
        fail("algorithm '", text, "' has no name; 'palmette plan --list' prints those that there are");
    if (colon == std::string_view::npos) return spec;
    for (const std::string_view option : base::split(whole.substr(colon + 1), ',')) {
        const std::size_t equals = option.find('=');
        const std::string_view key = base::trim(option.substr(0, equals));
        if (equals == std::string_view::npos || key.empty())
            fail("algorithm '", whole, "': '", option, "' is not KEY=VALUE");
        if (spec.find(key)) fail("algorithm '", whole, "': key '", key, "' stands twice");
        spec.options.emplace_back(key, base::trim(option.substr(equals + 1)));
    }
    return spec;
}

std::string Spec::text() const {
    std::string out = name;
    char separator = ':';
    for (const auto& [key, value] : options) {
        out += separator + key + '=' + value;
        separator = ',';
    }
    return out;
}

std::optional<std::string_view> Spec::find(std::string_view key) const {
    for (const auto& [name_, value] : options)
        if (name_ == key) return value;
    return std::nullopt;
}

std::int32_t Spec::integer(std::string_view key, std::int32_t fallback, std::int32_t least) const {
    const auto value = find(key);
    if (!value) return fallback;
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
    if (error != std::errc() || end != value->data() + value->size() || number < least)
        fail("algorithm '", text(), "': ", key, " must be a whole number of at least ", least, ", not '", *value, "'");
    return number;
}

std::int64_t Spec::size(std::string_view key, std::int64_t fallback) const {
    const auto value = find(key);
    if (!value) return fallback;
    const std::int64_t bytes = base::parse_size(*value);
    if (bytes < 1) fail("algorithm '", text(), "': ", key, " must be at least one byte");
    return bytes;
}

std::string_view Spec::word(std::string_view key, const std::vector<std::string_view>& words) const {
    const auto value = find(key);
    if (!value) return words.front();
    if (std::find(words.begin(), words.end(), *value) != words.end()) return *value;
    std::string known;
    for (const std::string_view w : words) known += (known.empty() ? "" : ", ") + std::string(w);
    fail("algorithm '", text(), "': ", key, " is one of ", known, ", not '", *value, "'");
}

}  // namespace palmette::collectives
