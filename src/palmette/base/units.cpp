#include "palmette/base/units.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "palmette/base/error.hpp"

namespace palmette::base {
namespace {

/// Cuts the number off the front of `text`; what remains is the unit.
double take_number(std::string_view& text, std::string_view what, std::string_view example) {
    text = trim(text);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || !std::isfinite(value) || value < 0)
        fail("'", text, "' is not a ", what, ": write it like ", example);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    text = trim(text);
    return value;
}

template <std::size_t N>
double unit_factor(const std::array<std::pair<std::string_view, double>, N>& units, std::string_view unit,
                   std::string_view whole, std::string_view what, std::string_view example) {
    for (const auto& [name, factor] : units)
        if (unit == name) return factor;
    fail("'", whole, "' is not a ", what, ": unit '", unit, "' is unknown; write it like ", example);
}

std::string with_unit(double value, const char* unit) { return cat(number_text(value, 4), " ", unit); }

}  // namespace

std::int64_t parse_size(std::string_view text) {
    static constexpr std::array<std::pair<std::string_view, double>, 15> units{{
        {"", 1},
        {"B", 1},
        {"K", 0x1p10},
        {"k", 0x1p10},
        {"KB", 0x1p10},
        {"KiB", 0x1p10},
        {"M", 0x1p20},
        {"m", 0x1p20},
        {"MB", 0x1p20},
        {"MiB", 0x1p20},
        {"G", 0x1p30},
        {"g", 0x1p30},
        {"GB", 0x1p30},
        {"GiB", 0x1p30},
        {"T", 0x1p40},
    }};
    const std::string_view whole = text;
    const double value = take_number(text, "size", "64, 16K or 1M");
    const double bytes = value * unit_factor(units, text, whole, "size", "64, 16K or 1M");
    if (bytes > 0x1p62) fail("size '", whole, "' is too large");
    if (bytes != std::floor(bytes)) fail("size '", whole, "' is not a whole number of bytes");
    return static_cast<std::int64_t>(bytes);
}

bool is_rate(double bytes_per_s) { return bytes_per_s >= 1 && bytes_per_s <= 1e18; }

bool is_duration(double seconds) { return seconds >= 0 && seconds <= 1e9; }

double parse_rate(std::string_view text) {
    static constexpr std::array<std::pair<std::string_view, double>, 12> units{{
        {"B/s", 1},
        {"kB/s", 1e3},
        {"KB/s", 1e3},
        {"MB/s", 1e6},
        {"GB/s", 1e9},
        {"TB/s", 1e12},
        {"bit/s", 1 / 8.},
        {"kbit/s", 1e3 / 8},
        {"Kbit/s", 1e3 / 8},
        {"Mbit/s", 1e6 / 8},
        {"Gbit/s", 1e9 / 8},
        {"Tbit/s", 1e12 / 8},
    }};
    const std::string_view whole = text;
    const double value = take_number(text, "rate", "100Mbit/s or 12.5GB/s");
    const double rate = value * unit_factor(units, text, whole, "rate", "100Mbit/s or 12.5GB/s");
    if (!is_rate(rate)) fail("rate '", whole, "' is none of 1 B/s to 1e18 B/s");
    return rate;
}

double parse_duration(std::string_view text) {
    static constexpr std::array<std::pair<std::string_view, double>, 4> units{
        {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}};
    const std::string_view whole = text;
    const double value = take_number(text, "duration", "5ms or 2us");
    const double seconds = value * unit_factor(units, text, whole, "duration", "5ms or 2us");
    if (!is_duration(seconds)) fail("duration '", whole, "' is none of 0 s to 1e9 s");
    return seconds;
}

std::string format_size(std::int64_t bytes) {
    static constexpr std::array<std::pair<std::int64_t, const char*>, 3> units{
        {{std::int64_t{1} << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}}};
    for (const auto& [unit, name] : units)
        if (bytes >= unit && bytes % unit == 0) return std::to_string(bytes / unit) + name;
    return std::to_string(bytes);
}

std::string format_rate(double bytes_per_s) {
    const double bits = bytes_per_s * 8;
    if (bits >= 1e12) return with_unit(bits / 1e12, "Tbit/s");
    if (bits >= 1e9) return with_unit(bits / 1e9, "Gbit/s");
    if (bits >= 1e6) return with_unit(bits / 1e6, "Mbit/s");
    return with_unit(bits / 1e3, "kbit/s");
}

std::string format_duration(double seconds) {
    if (seconds >= 1) return with_unit(seconds, "s");
    if (seconds >= 1e-3) return with_unit(seconds * 1e3, "ms");
    if (seconds >= 1e-6) return with_unit(seconds * 1e6, "us");
    return with_unit(seconds * 1e9, "ns");
}

}  // namespace palmette::base
