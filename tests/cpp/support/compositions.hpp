// Compositions that several tests share.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::test {

/// A length for each block, in elements of 4 bytes; some are empty.
inline std::vector<std::int64_t> uneven_bytes(std::string_view name, std::int32_t ranks) {
    std::vector<std::int64_t> out;
    const std::int64_t blocks = name == "alltoall" ? std::int64_t{ranks} * ranks : ranks;
    for (std::int64_t b = 0; b < blocks; ++b) out.push_back(b * 7 % 5 * 4);
    return out;
}

}  // namespace palmette::test
