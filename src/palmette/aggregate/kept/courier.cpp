#include "palmette/aggregate/kept/courier.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "palmette/aggregate/bytes.hpp"
#include "palmette/base/text.hpp"

namespace palmette::aggregate::kept {
namespace {

constexpr std::size_t most_datagram = most_kept_bytes + 256;

in6_addr mapped(const in_addr& v4) {
    in6_addr out{};
    out.s6_addr[10] = out.s6_addr[11] = 0xff;
    std::memcpy(&out.s6_addr[12], &v4, sizeof v4);
    return out;
}

/// Signals stay with the program's own threads.
class AllSignalsBlocked {
  public:
    AllSignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_{};
};

}  // namespace

std::size_t own_addresses(in6_addr* to, std::size_t most) noexcept {
    ifaddrs* all = nullptr;
    std::size_t count = 0;
    if (getifaddrs(&all) == 0) {
        for (const ifaddrs* one = all; one != nullptr && count + 1 < most; one = one->ifa_next) {
            if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0)
                continue;
            if (one->ifa_addr->sa_family == AF_INET) {
                to[count++] = mapped(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr);
            } else if (one->ifa_addr->sa_family == AF_INET6) {
                const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
                if (!IN6_IS_ADDR_LINKLOCAL(&address)) to[count++] = address;
            }
        }
        freeifaddrs(all);
    }
    in_addr loopback{};
    loopback.s_addr = htonl(INADDR_LOOPBACK);
    to[count++] = mapped(loopback);
    return count;
}

Courier& Courier::instance() {
    // Never destroyed: its thread may run until the process ends.
    static auto* const courier = new Courier;
    return *courier;
}

bool Courier::start(std::string& why) {
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    socket_ = Fd(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int off = 0;
    only_v4_ = !socket_ || setsockopt(socket_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0 ||
               ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0;
    if (only_v4_) {
        sockaddr_in v4{};
        v4.sin_family = AF_INET;
        socket_ = Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (!socket_ || ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&v4), sizeof v4) != 0) {
            why = base::cat("no socket for datagrams: ", std::strerror(errno));
            return false;
        }
    }
    port_ = port_of(socket_.get());
    ends_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!ends_) {
        why = base::cat("no descriptor to wake a thread: ", std::strerror(errno));
        return false;
    }
    try {
        const AllSignalsBlocked blocked;
        thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
        why = base::cat("no thread: ", error.what());
        return false;
    }
    return true;
}

bool Courier::add(std::shared_ptr<Peers> peers, std::string& why) {
    const std::lock_guard changes(changes_);
    if (!thread_.joinable() && !start(why)) {
        socket_.reset();
        ends_.reset();
        return false;
    }
    const std::lock_guard lock(mutex_);
    const Key key{peers->group(), peers->member()};
    groups_[key] = std::move(peers);
    return true;
}

void Courier::remove(const Peers& peers) {
    const std::lock_guard changes(changes_);
    {
        const std::lock_guard lock(mutex_);
        groups_.erase({peers.group(), peers.member()});
        if (!groups_.empty() || !thread_.joinable()) return;
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(ends_.get(), &one, sizeof one);
    thread_.join();
    socket_.reset();
    ends_.reset();
}

void Courier::send(const sockaddr_in6& to, std::string_view bytes) const noexcept {
    if (const unsigned of = lost_of.load(std::memory_order_relaxed); of > 0) {
        unsigned mixed = ++sent_ * 0x9E3779B9U;
        mixed = (mixed ^ mixed >> 15) * 0x85EBCA6BU;
        if ((mixed >> 16) % of == 0) return;
    }
    if (!only_v4_) {
        sendto(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&to), sizeof to);
        return;
    }
    if (!IN6_IS_ADDR_V4MAPPED(&to.sin6_addr)) return;
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = to.sin6_port;
    std::memcpy(&v4.sin_addr, &to.sin6_addr.s6_addr[12], sizeof v4.sin_addr);
    sendto(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
}

void Courier::run() {
    pthread_setname_np(pthread_self(), "palmette-kept");
    for (;;) {
        std::array<pollfd, 2> watched{pollfd{socket_.get(), POLLIN, 0}, pollfd{ends_.get(), POLLIN, 0}};
        poll(watched.data(), watched.size(), -1);
        if (watched[1].revents != 0) return;
        receive();
    }
}

void Courier::receive() {
    std::array<char, most_datagram> bytes;
    for (;;) {
        sockaddr_in6 from{};
        socklen_t size = sizeof from;
        const ssize_t got = recvfrom(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT,
                                     reinterpret_cast<sockaddr*>(&from), &size);
        if (got < 0) return;
        if (from.sin6_family == AF_INET) {
            sockaddr_in v4{};
            std::memcpy(&v4, &from, sizeof v4);
            from = {};
            from.sin6_family = AF_INET6;
            from.sin6_port = v4.sin_port;
            from.sin6_addr = mapped(v4.sin_addr);
        }
        Reader reader(bytes.data(), static_cast<std::size_t>(got));
        Key key;
        key.first = reader.get<std::uint64_t>();
        key.second = reader.get<std::uint32_t>();
        std::shared_ptr<Peers> peers;
        {
            const std::lock_guard lock(mutex_);
            const auto found = groups_.find(key);
            if (found != groups_.end()) peers = found->second;
        }
        if (peers) peers->receive({bytes.data(), static_cast<std::size_t>(got)}, from);
    }
}

}  // namespace palmette::aggregate::kept
