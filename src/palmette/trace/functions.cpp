#include "palmette/trace/functions.hpp"

#include <algorithm>
#include <array>

namespace palmette::trace {
namespace {

#include "palmette/trace/function_rows.hpp"

}  // namespace

const char* name_of(Kind kind) {
    constexpr std::array<const char*, 12> names{"other",      "init",       "barrier", "all_to_all",
                                                "one_to_all", "all_to_one", "scan",    "neighbours",
                                                "send",       "receive",    "wait",    "test"};
    return names.at(static_cast<std::size_t>(kind));
}

std::span<const Function> functions() { return rows; }

const Function& function_of(std::string_view name) {
    static constexpr Function unknown{};
    const auto* const found = std::ranges::lower_bound(rows, name, {}, &Function::name);
    return found != rows.end() && found->name == name ? *found : unknown;
}

bool only_tells(std::string_view name) {
    return std::ranges::any_of(telling, [&](std::string_view one) {
        return one.ends_with('*') ? name.starts_with(one.substr(0, one.size() - 1)) : name == one;
    });
}

}  // namespace palmette::trace
