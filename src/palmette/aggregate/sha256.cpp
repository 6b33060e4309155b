#include "palmette/aggregate/sha256.hpp"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace palmette::aggregate {
namespace {

constexpr std::array<std::uint32_t, 64> round_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr std::size_t block_bytes = 64;
constexpr std::string_view digits = "0123456789abcdef";

}  // namespace

void Sha256::block(const std::uint8_t* bytes) noexcept {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < 16; ++i) {
        w[i] = static_cast<std::uint32_t>(bytes[4 * i]) << 24 | static_cast<std::uint32_t>(bytes[4 * i + 1]) << 16 |
               static_cast<std::uint32_t>(bytes[4 * i + 2]) << 8 | bytes[4 * i + 3];
    }
    for (std::size_t i = 16; i < w.size(); ++i) {
        const std::uint32_t small0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
        const std::uint32_t small1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + small0 + w[i - 7] + small1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < w.size(); ++i) {
        const std::uint32_t big1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        const std::uint32_t first = h + big1 + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
        const std::uint32_t big0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        const std::uint32_t second = big0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + second;
    }
    const std::array<std::uint32_t, 8> now{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < now.size(); ++i) state_[i] += now[i];
}

void Sha256::add(std::string_view bytes) noexcept {
    while (!bytes.empty()) {
        const std::size_t held = size_ % block_bytes;
        const std::size_t part = std::min(block_bytes - held, bytes.size());
        std::memcpy(pending_.data() + held, bytes.data(), part);
        size_ += part;
        bytes.remove_prefix(part);
        if (size_ % block_bytes == 0) block(pending_.data());
    }
}

Digest Sha256::finish() noexcept {
    const std::uint64_t bits = size_ * 8;
    std::array<char, block_bytes + 8> end{};
    end[0] = '\x80';
    const std::size_t zeros = (block_bytes * 2 - 8 - 1 - size_ % block_bytes) % block_bytes;
    for (std::size_t i = 0; i < 8; ++i) end[1 + zeros + i] = static_cast<char>(bits >> (56 - 8 * i));
    add({end.data(), 1 + zeros + 8});
    Digest digest{};
    for (std::size_t i = 0; i < digest.size(); ++i)
        digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
}

Digest sha256(std::string_view bytes) noexcept {
    Sha256 hash;
    hash.add(bytes);
    return hash.finish();
}

Digest hmac(std::string_view key, std::string_view message) noexcept {
    std::array<char, block_bytes> padded{};
    const Digest hashed = sha256(key);
    if (key.size() > block_bytes) key = view(hashed);
    if (!key.empty()) std::memcpy(padded.data(), key.data(), key.size());
    Sha256 inner;
    Sha256 outer;
    std::array<char, block_bytes> pad{};
    std::transform(padded.begin(), padded.end(), pad.begin(), [](char one) { return static_cast<char>(one ^ 0x36); });
    inner.add({pad.data(), pad.size()});
    inner.add(message);
    std::transform(padded.begin(), padded.end(), pad.begin(), [](char one) { return static_cast<char>(one ^ 0x5c); });
    outer.add({pad.data(), pad.size()});
    outer.add(view(inner.finish()));
    return outer.finish();
}

bool same_digest(const Digest& one, const Digest& other) noexcept {
    unsigned differing = 0;
    for (std::size_t i = 0; i < one.size(); ++i) differing |= one[i] ^ other[i];
    return differing == 0;
}

std::string hex(std::string_view bytes) {
    std::string text;
    for (const char one : bytes) {
        text += digits[static_cast<unsigned char>(one) >> 4];
        text += digits[static_cast<unsigned char>(one) & 15U];
    }
    return text;
}

bool from_hex(std::string_view text, Digest& digest) noexcept {
    if (text.size() != 2 * digest.size()) return false;
    for (std::size_t i = 0; i < digest.size(); ++i) {
        const std::size_t high = digits.find(text[2 * i]);
        const std::size_t low = digits.find(text[2 * i + 1]);
        if (high == std::string_view::npos || low == std::string_view::npos) return false;
        digest[i] = static_cast<std::uint8_t>(high << 4 | low);
    }
    return true;
}

bool fill_random(void* bytes, std::size_t size) noexcept {
    auto* at = static_cast<char*>(bytes);
    while (size > 0) {
        const ssize_t got = getrandom(at, size, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        size -= static_cast<std::size_t>(got);
    }
    return true;
}

}  // namespace palmette::aggregate
