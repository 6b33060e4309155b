#include "palmette/aggregate/client/link.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace palmette::aggregate {
namespace {

/// Frames received in one call, so that it returns while a fast daemon goes on sending.
constexpr int frames_a_call = 64;

}  // namespace

std::optional<Invitation> invite(const Token& token, std::uint64_t group, std::uint32_t epoch) noexcept {
    Invitation made;
    made.group = group;
    made.epoch = epoch;
    if (!fill_random(made.salt.data(), made.salt.size())) return std::nullopt;
    made.secret = group_secret(token.key, group, epoch, made.salt);
    return made;
}

void Link::fail(Reason reason, const char* detail) noexcept {
    if (state_ == State::failed || state_ == State::left) return;
    state_ = State::failed;
    reason_ = reason;
    detail_.set("%s", detail);
    fd_.reset();
}

void Link::start() noexcept {
    last_ = Clock::now();
    Detail why;
    if (!fill_random(nonce_.data(), nonce_.size())) return fail(Reason::connect, "the kernel has no random numbers");
    fd_ = begin_connect(membership_.daemon, why);
    if (!fd_) return fail(Reason::connect, why.text.data());
    tune_stream(fd_.get(), timeouts_.silent_ms);
    limit_sending(fd_.get(), timeouts_.silent_ms);
    state_ = State::connecting;
}

Header Link::own(FrameType type) const {
    Header header;
    header.type = type;
    header.group = membership_.invitation.group;
    header.epoch = membership_.invitation.epoch;
    return header;
}

void Link::progress() noexcept {
    if (state_ == State::connecting) {
        const int error = connect_status(fd_.get());
        if (error == 0) {
            state_ = State::greeting;
        } else if (error != EINPROGRESS) {
            std::array<char, 64> text{};
            std::snprintf(text.data(), text.size(), "%s (error %d)",
                          error == ECONNREFUSED ? "the connection was refused" : "the daemon's host can't be reached",
                          error);
            return fail(Reason::connect, text.data());
        }
    }
    if (state_ == State::greeting || state_ == State::joining || state_ == State::ready) receive();
    if (state_ == State::joining || state_ == State::ready) send();
    watch();
}

void Link::receive() noexcept {
    for (int frames = 0; frames < frames_a_call && state_ != State::failed;) {
        switch (reader_.advance(fd_.get())) {
            case FrameReader::Progress::waiting:
                return;
            case FrameReader::Progress::header:
                if (!on_header()) return fail(Reason::protocol, "the daemon sent a frame that has no place here");
                break;
            case FrameReader::Progress::frame:
                heard_ = true;
                on_frame();
                ++frames;
                break;
            case FrameReader::Progress::ended:
                return fail(Reason::closed, "the daemon closed the connection");
            case FrameReader::Progress::damaged:
                return fail(Reason::damaged, "the daemon sent a damaged frame");
            case FrameReader::Progress::version:
                return fail(Reason::version, "the daemon speaks another version of the protocol");
        }
    }
}

bool Link::on_header() noexcept {
    const Header& header = reader_.header();
    char* to = reader_.control();
    if (header.type == FrameType::result) {
        const bool due = state_ == State::ready && header.group == membership_.invitation.group &&
                         header.epoch == membership_.invitation.epoch && header.chunk == resulted_ &&
                         resulted_ + (chunk_in_writer() ? 1 : 0) < sent_;
        if (!due || header.bytes > membership_.shape.chunk_bytes || !traffic_.place(header, to)) return false;
    }
    reader_.accept(to);
    return true;
}

void Link::on_frame() noexcept {
    const FrameType type = reader_.header().type;
    Abort ended;
    switch (type) {
        case FrameType::hello:
            return on_hello();
        case FrameType::ready:
            return on_ready();
        case FrameType::result:
            return on_result();
        case FrameType::pong:
            return on_pong();
        case FrameType::abort:
            if (!ended.read(reader_.payload())) return fail(Reason::damaged, "the daemon sent a damaged ABORT");
            state_ = State::failed;
            reason_ = ended.reason;
            detail_.set("%.*s", static_cast<int>(std::min<std::size_t>(ended.detail.size(), detail_.text.size())),
                        ended.detail.data());
            fd_.reset();
            return;
        default:
            return fail(Reason::protocol, "the daemon sent a frame that only members send");
    }
}

void Link::on_hello() noexcept {
    if (state_ != State::greeting || !hello_.read(reader_.payload()))
        return fail(Reason::protocol, "the daemon's greeting can't be read");
    if (hello_.fingerprint != machine_fingerprint())
        return fail(Reason::machine, "the daemon's processor, types or kernels differ from this process's");
    if (membership_.fits_limits) fit_limits();
    state_ = State::joining;
    join();
}

/// Fits the shape to the daemon's limits, with one result for all members, since all get the same greeting.
void Link::fit_limits() noexcept {
    Shape& shape = membership_.shape;
    shape.slots = static_cast<std::uint16_t>(std::min<std::uint32_t>(shape.slots, hello_.most_slots));
    if (shape.mode == Mode::datagram && shape.chunk_bytes > hello_.most_datagram_bytes && hello_.most_stream_bytes > 0)
        shape.mode = Mode::stream;
    const bool streams = shape.mode == Mode::stream;
    shape.chunk_bytes = std::min(shape.chunk_bytes, streams ? hello_.most_stream_bytes : hello_.most_datagram_bytes);
}

void Link::join() noexcept {
    const Header header = own(membership_.token ? FrameType::create : FrameType::join);
    std::array<char, most_control_bytes> bytes{};
    Writer out(bytes.data(), bytes.size());
    if (membership_.token) {
        Create create;
        create.fingerprint = machine_fingerprint();
        create.nonce = nonce_;
        create.salt = membership_.invitation.salt;
        create.shape = membership_.shape;
        create.levels = membership_.levels;
        create.token = membership_.token->text;
        create.write(out);
        out.put_bytes(view(create_proof(membership_.token->key, hello_.nonce, header, out.view())));
    } else {
        Join join;
        join.fingerprint = machine_fingerprint();
        join.nonce = nonce_;
        join.member = membership_.levels.at[0].member;
        join.shape = membership_.shape;
        join.proof =
            member_proof(membership_.invitation.secret, FrameType::join, hello_.nonce, nonce_, header, join.member);
        join.write(out);
    }
    if (!out.good()) return fail(Reason::authentication, "the token is too long");
    writer_.begin_control(header, out.view());
}

void Link::on_ready() noexcept {
    Digest proof{};
    const Header expected = own(FrameType::ready);
    const std::string_view payload = reader_.payload();
    if (state_ != State::joining || payload.size() != proof.size())
        return fail(Reason::protocol, "the daemon says that the group is ready, which nobody asked for");
    std::copy(payload.begin(), payload.end(), proof.begin());
    if (!same_digest(proof, member_proof(membership_.invitation.secret, FrameType::ready, hello_.nonce, nonce_,
                                         expected, membership_.levels.at[0].member)))
        return fail(Reason::authentication, "the daemon doesn't know the group's secret");
    state_ = State::ready;
}

void Link::on_result() noexcept {
    ++resulted_;
    stalled_ms_ = 0;
    traffic_.arrived(reader_.header());
}

void Link::on_pong() noexcept {
    const Header& header = reader_.header();
    if (!pinged_) return fail(Reason::protocol, "the daemon answers a PING that was never sent");
    pinged_ = false;
    // Frames keep their order: what was sent before the PING has been received before it.
    if (header.chunk < sent_at_ping_ || header.chunk > sent_)
        return fail(Reason::protocol, "the daemon denies chunks that it has received");
    missing_ = header.count;
    first_missing_ = header.offset;
    missing_above_ = (header.flags & above) != 0;
    if (missing_ > 0) stalled_ms_ = 0;
}

void Link::send() noexcept {
    for (;;) {
        if (!writer_.idle()) {
            if (!writer_.advance(fd_.get())) {
                receive();  // the reason may still be there to be read
                return fail(Reason::closed, "the daemon closed the connection");
            }
            if (!writer_.idle()) return;
        }
        if (wants_ping_) {
            wants_ping_ = false;
            pinged_ = true;
            sent_at_ping_ = sent_;
            writes_chunk_ = false;
            writer_.begin_control(own(FrameType::ping), {});
            continue;
        }
        Header header = own(FrameType::data);
        const char* payload = nullptr;
        header.chunk = sent_;
        if (state_ != State::ready || !window_open() || !traffic_.next(header, payload)) return;
        writes_chunk_ = true;
        writer_.begin(header, payload);
        ++sent_;
    }
}

void Link::watch() noexcept {
    const Clock::time_point now = Clock::now();
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - last_).count();
    if (passed == 0) return;
    last_ = now;
    if (state_ == State::idle || state_ == State::failed || state_ == State::left) return;
    // A program that computes for long between two calls hasn't waited that long.
    const int waited = static_cast<int>(std::min<std::int64_t>(passed, std::max(1, timeouts_.ping_ms)));
    since_start_ms_ += state_ == State::ready ? 0 : waited;
    if (state_ == State::connecting) {
        if (since_start_ms_ > timeouts_.connect_ms) fail(Reason::connect, "the daemon doesn't answer");
        return;
    }
    if (since_start_ms_ > timeouts_.connect_ms && state_ == State::greeting)
        return fail(Reason::silent, "the daemon doesn't greet");
    if (since_start_ms_ > timeouts_.join_ms && state_ == State::joining)
        return fail(Reason::late_join, "the other members haven't come");
    if (!open()) {
        silent_ms_ = since_ping_ms_ = stalled_ms_ = 0;
        heard_ = false;
        return;
    }
    silent_ms_ = heard_ ? 0 : silent_ms_ + waited;
    heard_ = false;
    since_ping_ms_ += waited;
    if (sent_ > resulted_ && missing_ == 0) stalled_ms_ += waited;
    if (silent_ms_ > timeouts_.silent_ms) return fail(Reason::silent, "the daemon doesn't answer PINGs");
    if (stalled_ms_ > timeouts_.silent_ms + timeouts_.ping_ms)
        return fail(Reason::stalled, "the daemon has all chunks and sends no result");
    if (state_ != State::greeting && since_ping_ms_ >= timeouts_.ping_ms && !pinged_) {
        since_ping_ms_ = 0;
        wants_ping_ = true;
        send();
    }
}

void Link::leave() noexcept {
    if (state_ == State::failed || state_ == State::left) return;
    if (writer_.idle() && fd_) {
        writer_.begin_control(own(FrameType::leave), {});
        writer_.advance(fd_.get());
    }
    state_ = State::left;
    fd_.reset();
}

short Link::events() const {
    if (state_ == State::connecting) return POLLOUT;
    return static_cast<short>(POLLIN | (writer_.idle() ? 0 : POLLOUT));
}

int Link::due_ms() const {
    if (state_ == State::connecting) return std::max(1, timeouts_.connect_ms / 4);
    if (!fd_ || !open()) return -1;
    return std::max(1, timeouts_.ping_ms - (pinged_ ? 0 : since_ping_ms_));
}

}  // namespace palmette::aggregate
