// Sizes, rates and durations as people write them. Inside, everything is bytes, bytes per second and seconds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace palmette::base {

/// "64", "16K", "1M", "2MiB", "1GB" -> bytes. K, M, G are powers of 1024 (as MPI benchmarks use them), also when
/// followed by B or iB. Throws Error on anything else, on negative sizes and on sizes past 2^62.
std::int64_t parse_size(std::string_view text);

/// "100Mbit/s", "12.5GB/s", "200Gbit/s", "1e9B/s" -> bytes per second; prefixes are powers of 1000. Throws Error.
double parse_rate(std::string_view text);

/// "5ms", "2us", "0.3s", "800ns" -> seconds. Throws Error.
double parse_duration(std::string_view text);

/// What a link may have: 1 to 1e18 bytes per second. Others are mistakes, and would take a model for ever.
bool is_rate(double bytes_per_s);
/// 0 to 1e9 seconds.
bool is_duration(double seconds);

/// 65536 -> "64K"; sizes that are no multiple of a unit are printed in bytes.
std::string format_size(std::int64_t bytes);

/// 12500000.0 -> "100 Mbit/s".
std::string format_rate(double bytes_per_s);

/// 0.0132 -> "13.2 ms".
std::string format_duration(double seconds);

}  // namespace palmette::base
