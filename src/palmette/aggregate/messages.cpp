#include "palmette/aggregate/messages.hpp"

#include <bit>
#include <cfloat>

namespace palmette::aggregate {
namespace {

/// Raised whenever a kernel changes a result's bits.
constexpr std::uint8_t kernels_version = 1;

void put(Writer& out, const Shape& shape) {
    out.put(static_cast<std::uint8_t>(shape.mode));
    out.put(shape.tree);
    out.put(shape.slots);
    out.put(shape.chunk_bytes);
}

bool get(Reader& in, Shape& shape) {
    const auto mode = in.get<std::uint8_t>();
    shape.mode = static_cast<Mode>(mode);
    shape.tree = in.get<std::uint8_t>();
    shape.slots = in.get<std::uint16_t>();
    shape.chunk_bytes = in.get<std::uint32_t>();
    return mode <= static_cast<std::uint8_t>(Mode::stream);
}

}  // namespace

std::uint64_t machine_fingerprint() noexcept {
    std::uint64_t value = kernels_version;
    value = value << 4 | (std::endian::native == std::endian::little ? 1U : 2U);
    value = value << 8 | sizeof(long);
    value = value << 8 | sizeof(long double);
    value = value << 8 | LDBL_MANT_DIG;
#ifdef __x86_64__
    constexpr unsigned flush_to_zero = 0x8000, subnormals_are_zero = 0x0040;
    const unsigned control = __builtin_ia32_stmxcsr();
    value = value << 2 | ((control & flush_to_zero) != 0 ? 2U : 0U) | ((control & subnormals_are_zero) != 0 ? 1U : 0U);
#endif
    return value;
}

void Hello::write(Writer& out) const noexcept {
    out.put_bytes(view(nonce));
    out.put(fingerprint);
    out.put(most_slots);
    out.put(most_datagram_bytes);
    out.put(most_stream_bytes);
    out.put(sharp_types);
}

bool Hello::read(std::string_view payload) noexcept {
    Reader in(payload.data(), payload.size());
    in.get_into<sizeof(Nonce)>(nonce);
    fingerprint = in.get<std::uint64_t>();
    most_slots = in.get<std::uint32_t>();
    most_datagram_bytes = in.get<std::uint32_t>();
    most_stream_bytes = in.get<std::uint32_t>();
    sharp_types = in.get<std::uint8_t>();
    return in.complete();
}

void Join::write(Writer& out) const noexcept {
    out.put(fingerprint);
    out.put_bytes(view(nonce));
    out.put(member);
    put(out, shape);
    out.put_bytes(view(proof));
}

bool Join::read(std::string_view payload) noexcept {
    Reader in(payload.data(), payload.size());
    fingerprint = in.get<std::uint64_t>();
    in.get_into<sizeof(Nonce)>(nonce);
    member = in.get<std::uint16_t>();
    const bool known = get(in, shape);
    in.get_into<sizeof(Digest)>(proof);
    return known && in.complete();
}

void Create::write(Writer& out) const noexcept {
    out.put(fingerprint);
    out.put_bytes(view(nonce));
    out.put_bytes(view(salt));
    put(out, shape);
    out.put(levels.count);
    for (std::size_t i = 0; i < levels.count; ++i) {
        out.put(levels.at[i].members);
        out.put(levels.at[i].member);
    }
    out.put_text(token);
}

bool Create::read(std::string_view payload) noexcept {
    Reader in(payload.data(), payload.size());
    fingerprint = in.get<std::uint64_t>();
    in.get_into<sizeof(Nonce)>(nonce);
    in.get_into<sizeof(Nonce)>(salt);
    const bool known = get(in, shape);
    levels.count = in.get<std::uint8_t>();
    if (!known || levels.count == 0 || levels.count > most_levels) return false;
    for (std::size_t i = 0; i < levels.count; ++i) {
        levels.at[i].members = in.get<std::uint16_t>();
        levels.at[i].member = in.get<std::uint16_t>();
        if (levels.at[i].member >= levels.at[i].members) return false;
    }
    token = in.get_text();
    before_proof = in.before();
    in.get_into<sizeof(Digest)>(proof);
    return in.complete();
}

void Abort::write(Writer& out) const noexcept {
    out.put(static_cast<std::uint8_t>(reason));
    out.put_text(detail);
}

bool Abort::read(std::string_view payload) noexcept {
    Reader in(payload.data(), payload.size());
    const auto number = in.get<std::uint8_t>();
    detail = in.get_text();
    reason = static_cast<Reason>(number);
    return in.complete() && number > 0 && number < reason_count;
}

Digest create_proof(const Digest& key, const Nonce& daemon, const Header& header, std::string_view payload) noexcept {
    std::array<char, most_control_bytes + 64> bytes{};
    Writer out(bytes.data(), bytes.size());
    out.put_bytes("create");
    out.put_bytes(view(daemon));
    out.put(header.group);
    out.put(header.epoch);
    out.put_bytes(payload);
    return hmac(view(key), out.view());
}

Digest member_proof(const Digest& secret, FrameType type, const Nonce& daemon, const Nonce& member,
                    const Header& header, std::uint16_t number) noexcept {
    std::array<char, 64> bytes{};
    Writer out(bytes.data(), bytes.size());
    out.put(static_cast<std::uint8_t>(type));
    out.put_bytes(view(daemon));
    out.put_bytes(view(member));
    out.put(header.group);
    out.put(header.epoch);
    out.put(number);
    return hmac(view(secret), out.view());
}

Digest group_secret(const Digest& key, std::uint64_t group, std::uint32_t epoch, const Nonce& salt) noexcept {
    std::array<char, 64> bytes{};
    Writer out(bytes.data(), bytes.size());
    out.put_bytes("secret");
    out.put(group);
    out.put(epoch);
    out.put_bytes(view(salt));
    return hmac(view(key), out.view());
}

}  // namespace palmette::aggregate
