#include "palmette/aggregate/frame_stream.hpp"

#include <cstring>

#include "palmette/aggregate/crc32c.hpp"

namespace palmette::aggregate {

FrameReader::Progress FrameReader::finish() noexcept {
    have_ = 0;
    if (header_.bytes > 0 && crc32c(payload_, header_.bytes) != header_.payload_crc) return Progress::damaged;
    return Progress::frame;
}

FrameReader::Progress FrameReader::advance(int fd) noexcept {
    if (have_ < header_bytes) {
        while (have_ < header_bytes) {
            const ssize_t got = receive_some(fd, bytes_.data() + have_, header_bytes - have_);
            if (got == would_block) return Progress::waiting;
            if (got == stream_ended) return Progress::ended;
            have_ += static_cast<std::size_t>(got);
        }
        const Reason reason = parse_header(bytes_.data(), header_);
        if (reason == Reason::version) return Progress::version;
        if (reason != Reason::none) return Progress::damaged;
        payload_ = nullptr;
        return Progress::header;
    }
    const std::size_t whole = header_bytes + header_.bytes;
    while (have_ < whole) {
        const ssize_t got = receive_some(fd, payload_ + (have_ - header_bytes), whole - have_);
        if (got == would_block) return Progress::waiting;
        if (got == stream_ended) return Progress::ended;
        have_ += static_cast<std::size_t>(got);
    }
    return finish();
}

void FrameWriter::begin(const Header& header, const char* payload) noexcept {
    write_header(header, bytes_.data());
    payload_ = payload;
    size_ = header_bytes + header.bytes;
    sent_ = 0;
}

void FrameWriter::begin_control(Header header, std::string_view payload) noexcept {
    header.bytes = static_cast<std::uint32_t>(payload.size());
    header.payload_crc = payload.empty() ? 0 : crc32c(payload.data(), payload.size());
    if (!payload.empty()) std::memcpy(control_.data(), payload.data(), payload.size());
    begin(header, control_.data());
}

bool FrameWriter::advance(int fd) noexcept {
    while (sent_ < size_) {
        const std::string_view head(bytes_.data(), header_bytes);
        const std::string_view body(payload_, size_ - header_bytes);
        const std::size_t of_body = sent_ < header_bytes ? 0 : sent_ - header_bytes;
        const ssize_t sent = send_some(fd, sent_ < header_bytes ? head.substr(sent_) : std::string_view(),
                                       body.empty() ? body : body.substr(of_body));
        if (sent == would_block) return true;
        if (sent == stream_ended) return false;
        sent_ += static_cast<std::size_t>(sent);
    }
    size_ = 0;
    return true;
}

}  // namespace palmette::aggregate
