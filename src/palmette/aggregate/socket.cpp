#include "palmette/aggregate/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "palmette/base/error.hpp"

namespace palmette::aggregate {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

std::string error_text(int number) { return std::system_category().message(number); }

AddressList resolve(const Address& address, int flags, int& error) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* first = nullptr;
    error = getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(), std::to_string(address.port).c_str(),
                        &hints, &first);
    return {error == 0 ? first : nullptr, &freeaddrinfo};
}

Fd stream_socket(int family) { return Fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

void set(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); }

}  // namespace

void Fd::reset() noexcept {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
}

Address numeric(const Address& address) {
    int error = 0;
    const AddressList found = resolve(address, 0, error);
    std::array<char, NI_MAXHOST> host{};
    if (found)
        error = getnameinfo(found->ai_addr, found->ai_addrlen, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
    if (error != 0) base::fail(address.text(), ": ", gai_strerror(error), "; name a host that can be resolved");
    return {host.data(), address.port};
}

Fd listen_on(const Address& address) {
    int error = 0;
    const AddressList found = resolve(address, AI_PASSIVE, error);
    if (!found) base::fail("can't listen on ", address.text(), ": ", gai_strerror(error), "; name another address");
    Fd fd = stream_socket(found->ai_family);
    set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (!fd || bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 || listen(fd.get(), SOMAXCONN) != 0)
        base::fail("can't listen on ", address.text(), ": ", error_text(errno), "; name another address");
    return fd;
}

Fd listen_on_path(const std::string& path) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    if (path.size() >= sizeof name.sun_path) base::fail(path, ": longer than a socket's path may be; name another one");
    std::memcpy(name.sun_path, path.data(), path.size());
    const auto* address = reinterpret_cast<const sockaddr*>(&name);
    const Fd other = stream_socket(AF_UNIX);
    if (connect(other.get(), address, sizeof name) == 0) base::fail(path, ": another daemon listens there");
    struct stat status{};
    if (lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) unlink(path.c_str());
    Fd fd = stream_socket(AF_UNIX);
    if (!fd || bind(fd.get(), address, sizeof name) != 0 || chmod(path.c_str(), 0660) != 0 || listen(fd.get(), 8) != 0)
        base::fail(path, ": ", error_text(errno), "; name another path for the status socket");
    return fd;
}

std::uint16_t port_of(int fd) noexcept {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return 0;
    return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
                                            : reinterpret_cast<const sockaddr_in&>(name).sin_port);
}

Fd begin_connect(const Address& address, Detail& detail) noexcept {
    int error = 0;
    const AddressList found = resolve(address, 0, error);
    if (!found) {
        detail.set("%s: %s", address.host.c_str(), gai_strerror(error));
        return {};
    }
    Fd fd = stream_socket(found->ai_family);
    if (!fd || (connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS)) {
        detail.set("%s port %u: error %d", address.host.c_str(), address.port, errno);
        return {};
    }
    return fd;
}

Fd accept_from(int listener, std::string& host, int& error) {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    Fd fd(accept4(listener, reinterpret_cast<sockaddr*>(&name), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    error = fd ? 0 : errno;
    std::array<char, NI_MAXHOST> text{};
    if (fd && getnameinfo(reinterpret_cast<sockaddr*>(&name), size, text.data(), text.size(), nullptr, 0,
                          NI_NUMERICHOST) == 0)
        host = text.data();
    return fd;
}

int connect_status(int fd) noexcept {
    pollfd waiting{fd, POLLOUT, 0};
    if (poll(&waiting, 1, 0) == 0) return EINPROGRESS;
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

void tune_stream(int fd, int timeout_ms) noexcept {
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1 + timeout_ms / 2000);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

void limit_sending(int fd, int timeout_ms) noexcept { set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, timeout_ms); }

bool is_cut_off(int fd, int timeout_ms) noexcept {
    tcp_info info{};
    socklen_t size = sizeof info;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_unacked > 0 &&
           info.tcpi_retransmits > 0 && info.tcpi_last_ack_recv > static_cast<std::uint32_t>(timeout_ms);
}

ssize_t receive_some(int fd, char* to, std::size_t size) noexcept {
    for (;;) {
        const ssize_t got = recv(fd, to, size, MSG_DONTWAIT);
        if (got > 0) return got;
        if (got < 0 && errno == EINTR) continue;
        return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? would_block : stream_ended;
    }
}

ssize_t send_some(int fd, std::string_view first, std::string_view second) noexcept {
    std::array<iovec, 2> pieces{
        {{const_cast<char*>(first.data()), first.size()}, {const_cast<char*>(second.data()), second.size()}}};
    msghdr message{};
    message.msg_iov = first.empty() ? &pieces[1] : pieces.data();
    message.msg_iovlen = (first.empty() ? 0 : 1) + (second.empty() ? 0 : 1);
    for (;;) {
        const ssize_t sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0) return sent;
        if (errno == EINTR) continue;
        return errno == EAGAIN || errno == EWOULDBLOCK ? would_block : stream_ended;
    }
}

}  // namespace palmette::aggregate
