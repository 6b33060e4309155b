// Parser of algorithm specifications: NAME[:KEY=VALUE[,KEY=VALUE]...].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace palmette::collectives {

/// A parsed specification. Keys keep the order in which they were written.
class Spec {
  public:
    /// Throws base::Error that names the faulty part.
    static Spec parse(std::string_view text);
    std::string text() const;

    std::string name;
    std::vector<std::pair<std::string, std::string>> options;

    std::optional<std::string_view> find(std::string_view key) const;
    /// A whole number of at least `least`. Throws base::Error naming key and value.
    std::int32_t integer(std::string_view key, std::int32_t fallback, std::int32_t least = 1) const;
    /// A size such as 64K, or `fallback` where the key is absent.
    std::int64_t size(std::string_view key, std::int64_t fallback) const;
    /// One of `words`, the first of which is the default. Throws base::Error that lists them.
    std::string_view word(std::string_view key, const std::vector<std::string_view>& words) const;
};

}  // namespace palmette::collectives
