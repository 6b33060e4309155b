// One group in one daemon: its members' connections, its window, and its place at the daemon above.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "palmette/aggregate/client/link.hpp"
#include "palmette/aggregate/daemon/ledger.hpp"
#include "palmette/aggregate/daemon/window.hpp"

namespace palmette::aggregate {

using Clock = std::chrono::steady_clock;

class Group;

/// A member's connection, from HELLO to its end.
struct Connection {
    enum class State : std::uint8_t { greeting, member, closing, dead };

    Connection(Fd socket, std::string from, const Nonce& own)
        : fd(std::move(socket)), host(std::move(from)), nonce(own) {}

    Fd fd;
    std::string host;
    Nonce nonce;
    Nonce member_nonce{};
    State state = State::greeting;
    std::uint32_t events = 0;  ///< events that epoll reports
    FrameReader reader;
    FrameWriter writer;
    std::shared_ptr<Group> group;  ///< kept after the group's end while a result is being sent from its memory
    std::uint16_t member = 0;
    Clock::time_point deadline{};  ///< time by which greeting or closing must be over

    bool owes_hello = true;
    bool owes_ready = false;
    bool owes_pong = false;
    bool owes_abort = false;
    bool sends_result = false;
    bool shut = false;
    Reason why = Reason::none;
    Detail detail;
};

class Group final : public Traffic {
  public:
    struct Identity {
        std::uint64_t number = 0;
        std::uint32_t epoch = 0;
        std::uint32_t uid = 0;
        Shape shape;
        Levels levels;  ///< the member numbers of the first level aside
        Digest secret{};
    };

    /// Throws std::bad_alloc.
    Group(const Identity& own, std::unique_ptr<Ledger::Reservation> reserved, bool only_sharp);

    /// Whether a member that asks to make a group means this one.
    bool same(const Identity& other) const;
    bool complete() const { return joined == members.size(); }
    bool is_inner() const { return identity.levels.count > 1; }
    /// Begins to join at the daemon above.
    void climb(const Address& parent, const Token& token, const Nonce& salt, const Timeouts& timeouts);
    /// Members that are waited for, the first of them, and whether they are at a daemon above.
    std::uint64_t missing(std::uint64_t& first, bool& at_above) const;

    Identity identity;
    std::vector<Connection*> members;
    std::size_t joined = 0;
    bool ready = false;
    bool leaving = false;  ///< a member has left in order: no operation follows
    bool ended = false;
    Clock::time_point made = Clock::now();
    Token token;  ///< for the daemon above
    Nonce salt{};
    std::unique_ptr<Link> up;
    int up_fd = -1;
    std::uint32_t up_events = 0;

  private:
    bool next(Header& header, const char*& payload) noexcept override;
    bool place(const Header& header, char*& payload) noexcept override;
    void arrived(const Header& header) noexcept override;

    std::unique_ptr<Ledger::Reservation> reserved_;

  public:
    Window window;
};

}  // namespace palmette::aggregate
