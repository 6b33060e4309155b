// Sockets that never block, and addresses as users write them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "palmette/aggregate/reason.hpp"
#include "palmette/base/address.hpp"

namespace palmette::aggregate {

/// Closes a file descriptor.
class Fd {
  public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Fd() { reset(); }
    void reset() noexcept;
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_ = -1;
};

using base::Address;

/// The address with the host as a number, so that no later use waits for a name server. Throws base::Error.
Address numeric(const Address& address);
/// Throws base::Error that names the address.
Fd listen_on(const Address& address);
/// Listens on a path with mode 0660; a socket that nobody listens on is replaced. Throws base::Error.
Fd listen_on_path(const std::string& path);
std::uint16_t port_of(int fd) noexcept;

/// Begins to connect; may wait for the name's resolution. Without a descriptor `detail` says why.
Fd begin_connect(const Address& address, Detail& detail) noexcept;
/// The next connection, or none, with its host's number.
Fd accept_from(int listener, std::string& host, int& error);
/// 0 when connected, EINPROGRESS while not, or the error's number.
int connect_status(int fd) noexcept;

/// Sends small frames at once, and finds idle connections to hosts that are down or cut off within some `timeout_ms`.
void tune_stream(int fd, int timeout_ms) noexcept;
/// Ends a connection whose data under way isn't acknowledged for `timeout_ms`. Only towards a peer that always reads:
/// the kernel also ends a connection whose peer has had no room for that long.
void limit_sending(int fd, int timeout_ms) noexcept;
/// Whether the peer's host has acknowledged nothing of what is under way for so long. A peer that just doesn't read
/// has.
bool is_cut_off(int fd, int timeout_ms) noexcept;

inline constexpr ssize_t would_block = -1, stream_ended = -2;
/// Bytes received (at least 1), would_block, or stream_ended for the end and for errors.
ssize_t receive_some(int fd, char* to, std::size_t size) noexcept;
/// Bytes sent of two pieces together, would_block or stream_ended.
ssize_t send_some(int fd, std::string_view first, std::string_view second) noexcept;

}  // namespace palmette::aggregate
