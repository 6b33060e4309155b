// Frames of the aggregation service: a header of 64 bytes, little-endian, then the payload. docs/decisions/0023 has the
// protocol. The parser is pure and takes any 64 bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "palmette/aggregate/reason.hpp"
#include "palmette/kernels/kernels.hpp"

namespace palmette::aggregate {

inline constexpr std::uint32_t frame_magic = 0x41474d50;  // "PMGA"
inline constexpr std::uint8_t protocol_version = 1;
inline constexpr std::size_t header_bytes = 64;
/// Payloads of all frames but DATA and RESULT.
inline constexpr std::size_t most_control_bytes = 1024;
inline constexpr std::uint32_t most_chunk_bytes = 1U << 24;

enum class FrameType : std::uint8_t {
    hello = 1,  ///< from the daemon: nonce, limits
    create,     ///< makes a group and joins it
    join,
    ready,   ///< from the daemon: all members of the tree are there
    data,    ///< a member's chunk
    result,  ///< from the daemon: the chunk combined, or the leave to send on
    abort,   ///< why the group ended
    ping,
    pong,  ///< from the daemon: chunks received from this member, and whom it waits for
    leave,
};

enum class Collective : std::uint8_t { none, allreduce, reduce, bcast, reduce_scatter, barrier };
inline constexpr std::size_t collective_count = static_cast<std::size_t>(Collective::barrier) + 1;
constexpr const char* name_of(Collective collective) {
    constexpr std::array<const char*, collective_count> names{"none",  "allreduce",      "reduce",
                                                              "bcast", "reduce_scatter", "barrier"};
    return names[static_cast<std::size_t>(collective)];
}

/// What a member does with a chunk, in the header's flags.
inline constexpr std::uint8_t gives = 1;  ///< the payload is its contribution
inline constexpr std::uint8_t wants = 2;  ///< the result is to be sent to it
/// Flag of PONG: members are missing at a daemon above.
inline constexpr std::uint8_t above = 4;

struct Header {
    FrameType type = FrameType::hello;
    std::uint8_t flags = 0;
    std::uint64_t group = 0;
    std::uint32_t epoch = 0;
    // The operation, the same in all frames of one chunk.
    Collective collective = Collective::none;
    kernels::Operator op{};
    kernels::Element element{};
    std::uint16_t root = 0;
    std::uint32_t sequence = 0;
    std::uint64_t chunk = 0;   ///< counted from the group's first operation on
    std::uint64_t offset = 0;  ///< elements of the operation before this chunk
    std::uint64_t count = 0;   ///< elements of the operation

    std::uint32_t bytes = 0;  ///< payload size
    std::uint32_t payload_crc = 0;
};

/// Whether both belong to the same chunk of the same operation.
bool same_chunk(const Header& one, const Header& other) noexcept;

/// Elements of a DATA or RESULT frame with a payload of that many bytes fit into the operation.
bool fits_operation(const Header& header) noexcept;

using HeaderBytes = std::array<char, header_bytes>;

void write_header(const Header& header, char* to) noexcept;

/// Reason::none, version or damaged. What it lets through has a known type, collective, operation and element, and at
/// most the payload that its type may have.
Reason parse_header(const char* from, Header& header) noexcept;

}  // namespace palmette::aggregate
