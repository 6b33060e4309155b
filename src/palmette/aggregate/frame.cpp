#include "palmette/aggregate/frame.hpp"

#include "palmette/aggregate/bytes.hpp"
#include "palmette/aggregate/crc32c.hpp"

namespace palmette::aggregate {
namespace {

constexpr std::size_t crc_at = header_bytes - sizeof(std::uint32_t);

bool carries_chunk(FrameType type) { return type == FrameType::data || type == FrameType::result; }

}  // namespace

bool same_chunk(const Header& one, const Header& other) noexcept {
    return one.chunk == other.chunk && one.sequence == other.sequence && one.collective == other.collective &&
           one.op == other.op && one.element == other.element && one.root == other.root && one.count == other.count &&
           one.offset == other.offset;
}

bool fits_operation(const Header& header) noexcept {
    const std::size_t extent = kernels::bytes_of(header.element).extent;
    return header.bytes % extent == 0 && header.offset <= header.count &&
           header.bytes / extent <= header.count - header.offset;
}

void write_header(const Header& header, char* to) noexcept {
    Writer out(to, header_bytes);
    out.put(frame_magic);
    out.put(protocol_version);
    out.put(static_cast<std::uint8_t>(header.type));
    out.put(static_cast<std::uint8_t>(header.collective));
    out.put(header.flags);
    out.put(header.group);
    out.put(header.epoch);
    out.put(header.sequence);
    out.put(header.chunk);
    out.put(header.offset);
    out.put(header.count);
    out.put(header.root);
    out.put(static_cast<std::uint8_t>(header.op));
    out.put(static_cast<std::uint8_t>(header.element));
    out.put(header.bytes);
    out.put(header.payload_crc);
    out.put(crc32c(to, crc_at));
}

Reason parse_header(const char* from, Header& header) noexcept {
    Reader in(from, header_bytes);
    if (in.get<std::uint32_t>() != frame_magic) return Reason::damaged;
    const auto version = in.get<std::uint8_t>();
    // Before the checksum: another version may have it elsewhere.
    if (version != protocol_version) return Reason::version;
    const auto type = in.get<std::uint8_t>();
    const auto collective = in.get<std::uint8_t>();
    header.flags = in.get<std::uint8_t>();
    header.group = in.get<std::uint64_t>();
    header.epoch = in.get<std::uint32_t>();
    header.sequence = in.get<std::uint32_t>();
    header.chunk = in.get<std::uint64_t>();
    header.offset = in.get<std::uint64_t>();
    header.count = in.get<std::uint64_t>();
    header.root = in.get<std::uint16_t>();
    const auto op = in.get<std::uint8_t>();
    const auto element = in.get<std::uint8_t>();
    header.bytes = in.get<std::uint32_t>();
    header.payload_crc = in.get<std::uint32_t>();
    if (in.get<std::uint32_t>() != crc32c(from, crc_at)) return Reason::damaged;
    if (type < static_cast<std::uint8_t>(FrameType::hello) || type > static_cast<std::uint8_t>(FrameType::leave) ||
        collective >= collective_count || op >= kernels::operator_count || element >= kernels::element_count)
        return Reason::damaged;
    header.type = static_cast<FrameType>(type);
    header.collective = static_cast<Collective>(collective);
    header.op = static_cast<kernels::Operator>(op);
    header.element = static_cast<kernels::Element>(element);
    if (carries_chunk(header.type) != (header.collective != Collective::none)) return Reason::damaged;
    if (header.bytes > (carries_chunk(header.type) ? most_chunk_bytes : most_control_bytes)) return Reason::damaged;
    return Reason::none;
}

}  // namespace palmette::aggregate
