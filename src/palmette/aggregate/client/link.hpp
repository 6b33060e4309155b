// A member's connection to its daemon: joins a group, then moves chunks in both directions within the window. Both a
// job's leaders and daemons below another one use it. A state machine without threads: whoever owns it calls
// progress().
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "palmette/aggregate/frame_stream.hpp"
#include "palmette/aggregate/messages.hpp"
#include "palmette/aggregate/token.hpp"

namespace palmette::aggregate {

/// What a job's first leader makes and hands to the other leaders over MPI.
struct Invitation {
    std::uint64_t group = 0;
    std::uint32_t epoch = 0;
    Nonce salt{};
    Digest secret{};
};
/// A group with a random number; later epochs of it have their own secrets. Nothing where there is no randomness.
std::optional<Invitation> invite(const Token& token, std::uint64_t group, std::uint32_t epoch) noexcept;

struct Timeouts {
    int connect_ms = 5000;  ///< until the daemon has greeted
    int ping_ms = 1000;     ///< between PINGs while something is open
    int silent_ms = 5000;   ///< without an answer, in time that was spent waiting
    int join_ms = 60000;    ///< until all members are there
};

struct Membership {
    Address daemon;
    Invitation invitation;
    Levels levels;  ///< from this daemon, with the member's own number, up to the root of the tree
    Shape shape;
    bool fits_limits = false;    ///< where the daemon's profile has less than `shape`, that is taken
    std::optional<Token> token;  ///< a link with a token makes the group, unless another member was first
};

/// What a link moves. Called by progress() only; pointers stay valid until the chunk's result has arrived.
class Traffic {
  public:
    Traffic() = default;
    Traffic(const Traffic&) = delete;
    Traffic& operator=(const Traffic&) = delete;
    virtual ~Traffic() = default;
    /// The next chunk to send: operation, flags, bytes, payload_crc. False while there is none.
    virtual bool next(Header& header, const char*& payload) noexcept = 0;
    /// Sets `payload` to where a chunk's result goes. False where the header isn't what must come.
    virtual bool place(const Header& header, char*& payload) noexcept = 0;
    virtual void arrived(const Header& header) noexcept = 0;
};

class Link {
  public:
    enum class State : std::uint8_t { idle, connecting, greeting, joining, ready, failed, left };

    Link(Membership membership, Timeouts timeouts, Traffic& traffic)
        : membership_(std::move(membership)), timeouts_(timeouts), traffic_(traffic) {}

    void start() noexcept;
    /// Moves what can be moved without waiting.
    void progress() noexcept;
    /// Ends the membership, and with it the group.
    void leave() noexcept;
    void fail(Reason reason, const char* detail) noexcept;

    State state() const { return state_; }
    Reason reason() const { return reason_; }
    std::string_view detail() const { return detail_.view(); }
    const Hello& hello() const { return hello_; }
    const Membership& membership() const { return membership_; }

    int fd() const { return fd_.get(); }
    /// POLLIN and, where there is something to send, POLLOUT.
    short events() const;
    /// Milliseconds until progress() is due even without an event; -1: not before one.
    int due_ms() const;

    std::uint64_t sent() const { return sent_; }
    std::uint64_t resulted() const { return resulted_; }
    /// Members that the daemon waited for at the last PONG, and the first of them.
    std::uint64_t missing() const { return missing_; }
    std::uint64_t first_missing() const { return first_missing_; }
    bool missing_above() const { return missing_above_; }

  private:
    using Clock = std::chrono::steady_clock;

    bool open() const { return state_ == State::greeting || state_ == State::joining || sent_ > resulted_; }
    bool window_open() const { return sent_ < resulted_ + membership_.shape.slots; }
    bool chunk_in_writer() const { return writes_chunk_ && !writer_.idle(); }
    Header own(FrameType type) const;
    void receive() noexcept;
    bool on_header() noexcept;
    void on_frame() noexcept;
    void on_hello() noexcept;
    void on_ready() noexcept;
    void on_pong() noexcept;
    void on_result() noexcept;
    void fit_limits() noexcept;
    void join() noexcept;
    void send() noexcept;
    void watch() noexcept;

    Membership membership_;
    Timeouts timeouts_;
    Traffic& traffic_;
    Fd fd_;
    State state_ = State::idle;
    Reason reason_ = Reason::none;
    Detail detail_;
    FrameReader reader_;
    FrameWriter writer_;
    bool writes_chunk_ = false;  ///< what the writer has begun is DATA
    Hello hello_;
    Nonce nonce_{};
    std::uint64_t sent_ = 0;      ///< chunks written to the socket, or being written
    std::uint64_t resulted_ = 0;  ///< chunks whose results have arrived
    std::uint64_t missing_ = 0;
    std::uint64_t first_missing_ = 0;
    bool missing_above_ = false;
    bool wants_ping_ = false;
    bool pinged_ = false;
    std::uint64_t sent_at_ping_ = 0;
    bool heard_ = false;  ///< something since the last watch()
    Clock::time_point last_{};
    int since_start_ms_ = 0;
    int silent_ms_ = 0;
    int since_ping_ms_ = 0;
    int stalled_ms_ = 0;
};

}  // namespace palmette::aggregate
