// A group's members as one of them reaches the others when the service has failed: by datagrams that a thread of each
// process answers, whatever the program does meanwhile. Without failures nothing is sent after they have met.
#pragma once

#include <netinet/in.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "palmette/aggregate/kept/protocol.hpp"
#include "palmette/aggregate/reason.hpp"
#include "palmette/aggregate/sha256.hpp"

namespace palmette::aggregate::kept {

/// Longer results aren't kept: they go into one datagram.
inline constexpr std::size_t most_kept_bytes = 4096;

/// What member 0 makes and the others get over MPI.
struct Opening {
    static constexpr std::size_t most_addresses = 8;

    std::uint64_t group = 0;  ///< a random number
    Digest key{};             ///< key of all datagrams' HMACs
    std::uint16_t port = 0;   ///< port of member 0's process
    std::uint16_t address_count = 0;
    std::array<in6_addr, most_addresses> addresses{};  ///< addresses of member 0's host; loopback is the last
};

class Peers {
  public:
    /// Member 0: makes the opening. Null where the system has no socket, thread or random numbers: `why` says which.
    static std::shared_ptr<Peers> open(std::uint32_t members, Opening& opening, std::string& why);
    /// Another member.
    static std::shared_ptr<Peers> join(std::uint32_t member, std::uint32_t members, const Opening& opening,
                                       std::string& why);
    /// Nothing is answered any more: all members have all results.
    void close();

    /// Called again and again until true: all have shown that they reach member 0, and it them.
    bool meet();

    // One operation after the other; `bytes` is at most most_kept_bytes.

    /// Begins the next operation. False: the operation is for the hosts.
    bool contribute();
    /// Buffer in which the service writes the result, `bytes` long.
    char* result(std::size_t bytes) {
        result_.resize(bytes);
        return result_.data();
    }
    /// The service's result is there. False: it doesn't count, and a verdict has to be waited for.
    bool keep();
    /// `reason`: why this member has lost the service; the first one counts.
    void freeze(Reason reason, std::string_view detail);
    bool frozen() const;

    /// Called again and again: what the arbiter has decided on the operation that this member has contributed to.
    enum class Verdict : std::uint8_t {
        none,
        result,  ///< the result is in result()
        hosts
    };
    Verdict verdict();
    /// What hosts have made.
    void settle(std::string_view result);

    std::uint64_t group() const { return opening_.group; }
    std::uint32_t members() const { return members_; }
    std::uint32_t member() const { return member_; }
    /// The first failure that this member has heard of, its own or, as the arbiter, another one's.
    struct Failure {
        Reason reason = Reason::none;
        std::string detail;
        std::uint32_t member = 0;
    };
    Failure failure() const;
    /// Operations so far that hosts have combined.
    std::uint64_t by_hosts() const;
    /// The arbiter's: operations so far whose result some members got from another one.
    std::uint64_t given() const;

  private:
    friend class Courier;
    using Clock = std::chrono::steady_clock;
    struct Datagram {
        std::uint32_t member = 0;  ///< the sender
        std::uint8_t kind = 0;
        Word word;
    };

    Peers(std::uint32_t member, std::uint32_t members, const Opening& opening);

    /// Takes a datagram; called on the courier's thread.
    void receive(std::string_view bytes, const sockaddr_in6& from);

    std::string packed(std::uint32_t to, std::uint8_t kind, const Word& word) const;
    bool unpack(std::string_view bytes, Datagram& out) const;
    void send_to_arbiter(const Word& word);
    void hear_as_arbiter(std::uint32_t member, const Word& word);
    void hear_as_member(const Word& word);
    void deliver(std::vector<Arbiter::Outgoing>& out);

    const std::uint32_t member_, members_;
    const Opening opening_;
    mutable std::mutex mutex_;
    Keeper keeper_;
    std::string result_;
    std::optional<Word> decided_;
    Clock::time_point asked_{};
    sockaddr_in6 arbiter_at_{};
    bool welcome_ = false;  ///< member 0 has answered

    /// Member 0's.
    std::optional<Arbiter> arbiter_;
    std::vector<sockaddr_in6> members_at_;
    std::uint32_t met_ = 1;

    Failure failure_;
    std::uint64_t by_hosts_ = 0, given_ = 0;
};

}  // namespace palmette::aggregate::kept
