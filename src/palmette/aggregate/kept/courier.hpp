// The socket and the thread by which the groups of this process hear of others' failures.
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "palmette/aggregate/kept/peers.hpp"
#include "palmette/aggregate/socket.hpp"

namespace palmette::aggregate::kept {

/// One for the process, from its first group to its last. The thread sleeps until a datagram comes; it calls no MPI,
/// takes no signals, and allocates only after a failure.
class Courier {
  public:
    static Courier& instance();

    /// False where the system has no socket or thread; `why` says so.
    bool add(std::shared_ptr<Peers> peers, std::string& why);
    void remove(const Peers& peers);

    std::uint16_t port() const { return port_; }
    /// Best effort, as datagrams are.
    void send(const sockaddr_in6& to, std::string_view bytes) const noexcept;
    /// For tests: about one datagram in `lost_of` is lost, in no regular order; 0: none.
    std::atomic<unsigned> lost_of{0};

  private:
    using Key = std::pair<std::uint64_t, std::uint32_t>;  ///< group and member: tests have several in one process
    bool start(std::string& why);
    void run();
    void receive();

    std::mutex changes_;  ///< one group comes or goes after the other, with socket and thread
    std::mutex mutex_;
    std::map<Key, std::shared_ptr<Peers>> groups_;
    mutable std::atomic<unsigned> sent_{0};
    Fd socket_;
    Fd ends_;  ///< readable: the thread has to end
    bool only_v4_ = false;
    std::uint16_t port_ = 0;
    std::thread thread_;
};

/// Addresses of this host's interfaces, at most `most`; loopback is the last. IPv4 ones are mapped.
std::size_t own_addresses(in6_addr* to, std::size_t most) noexcept;

}  // namespace palmette::aggregate::kept
