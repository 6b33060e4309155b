// Frames over a socket that never blocks: one at a time in each direction, resumed where the socket stopped.
#pragma once

#include <array>
#include <string_view>

#include "palmette/aggregate/frame.hpp"
#include "palmette/aggregate/socket.hpp"

namespace palmette::aggregate {

/// Receives: the header first, whose receiver says where the payload goes, then the payload with its checksum.
class FrameReader {
  public:
    enum class Progress { waiting, header, frame, ended, damaged, version };

    /// At `header`, accept() must follow; at `frame`, the next call begins the next one.
    Progress advance(int fd) noexcept;
    const Header& header() const { return header_; }
    void accept(char* payload) noexcept { payload_ = payload; }
    /// Buffer for control frames.
    char* control() { return control_.data(); }
    std::string_view payload() const { return {payload_, header_.bytes}; }
    /// Whether the stream stands between two frames.
    bool between() const { return have_ == 0; }

  private:
    Progress finish() noexcept;

    HeaderBytes bytes_{};
    std::array<char, most_control_bytes> control_{};
    Header header_;
    char* payload_ = nullptr;
    std::size_t have_ = 0;  ///< bytes of header and payload received so far
};

/// Sends one frame, whose payload stays where it is until idle().
class FrameWriter {
  public:
    bool idle() const { return size_ == 0; }
    /// `payload_crc` of the header is to be right already, for chunks go to several members.
    void begin(const Header& header, const char* payload) noexcept;
    /// A frame with a short payload, which is copied.
    void begin_control(Header header, std::string_view payload) noexcept;
    /// False where the connection has ended.
    bool advance(int fd) noexcept;

  private:
    HeaderBytes bytes_{};
    std::array<char, most_control_bytes> control_{};
    const char* payload_ = nullptr;
    std::size_t size_ = 0;
    std::size_t sent_ = 0;
};

}  // namespace palmette::aggregate
