// CRC-32C (Castagnoli), which frames of the aggregation service carry over header and payload.
#pragma once

#include <cstddef>
#include <cstdint>

namespace palmette::aggregate {

/// CRC-32C of `size` bytes, continued from `before`, the value of the bytes before. By the processor's own instruction
/// where it has one.
std::uint32_t crc32c(const void* bytes, std::size_t size, std::uint32_t before = 0) noexcept;

/// CRC-32C by tables, on any processor.
std::uint32_t crc32c_by_tables(const void* bytes, std::size_t size, std::uint32_t before = 0) noexcept;

}  // namespace palmette::aggregate
