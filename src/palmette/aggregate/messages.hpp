// What the frames that make a group carry, and the proofs in them. docs/decisions/0023 says what they keep out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "palmette/aggregate/bytes.hpp"
#include "palmette/aggregate/frame.hpp"
#include "palmette/aggregate/sha256.hpp"

namespace palmette::aggregate {

using Nonce = std::array<char, 16>;
inline std::string_view view(const Nonce& nonce) { return {nonce.data(), nonce.size()}; }

/// Byte order, sizes of types, version of the kernels, and whether subnormal numbers are flushed to zero: members
/// with another one would get other bits.
std::uint64_t machine_fingerprint() noexcept;

/// One daemon on the way from a member to the root of the tree: how many members it has in this group, and the number
/// of the one that the way goes through.
struct Level {
    std::uint16_t members = 0;
    std::uint16_t member = 0;
    friend bool operator==(const Level&, const Level&) = default;
};
inline constexpr std::size_t most_levels = 8;
struct Levels {
    std::array<Level, most_levels> at{};
    std::uint8_t count = 0;
    friend bool operator==(const Levels&, const Levels&) = default;
};

/// `stream` takes the tree's lock where the profile has one, and may then have longer chunks.
enum class Mode : std::uint8_t { datagram, stream };

/// A group's resources in each daemon.
struct Shape {
    Mode mode = Mode::datagram;
    std::uint8_t tree = 0;
    std::uint16_t slots = 8;  ///< chunks of each member in flight
    std::uint32_t chunk_bytes = 16384;
    friend bool operator==(const Shape&, const Shape&) = default;
};

struct Hello {
    Nonce nonce{};
    std::uint64_t fingerprint = 0;
    std::uint32_t most_slots = 0;
    std::uint32_t most_datagram_bytes = 0;
    std::uint32_t most_stream_bytes = 0;
    std::uint8_t sharp_types = 0;  ///< only the operations and types that SHARP has

    void write(Writer& out) const noexcept;
    bool read(std::string_view payload) noexcept;
};

struct Join {
    std::uint64_t fingerprint = 0;
    Nonce nonce{};
    std::uint16_t member = 0;
    Shape shape;
    Digest proof{};

    void write(Writer& out) const noexcept;
    bool read(std::string_view payload) noexcept;
};

struct Create {
    std::uint64_t fingerprint = 0;
    Nonce nonce{};
    Nonce salt{};
    Shape shape;
    Levels levels;  ///< the first one is the daemon itself
    std::string_view token;
    Digest proof{};

    std::string_view before_proof;  ///< set by read(): what the proof is about

    /// All but the proof, which is appended.
    void write(Writer& out) const noexcept;
    bool read(std::string_view payload) noexcept;
};

struct Abort {
    Reason reason = Reason::none;
    std::string_view detail;

    void write(Writer& out) const noexcept;
    bool read(std::string_view payload) noexcept;
};

/// Proves that the sender holds the token's key; covers all of CREATE.
Digest create_proof(const Digest& key, const Nonce& daemon, const Header& header, std::string_view payload) noexcept;
/// Proves that the sender of JOIN, or of READY, holds the group's secret.
Digest member_proof(const Digest& secret, FrameType type, const Nonce& daemon, const Nonce& member,
                    const Header& header, std::uint16_t number) noexcept;
/// The group's secret: both sides derive it, so that it never crosses the network of the daemons.
Digest group_secret(const Digest& key, std::uint64_t group, std::uint32_t epoch, const Nonce& salt) noexcept;

}  // namespace palmette::aggregate
