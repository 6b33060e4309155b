// Stands between a member and its daemon, and cuts, stops, damages or rewrites what passes. Driven turn by turn.
#pragma once

#include <functional>
#include <string>

#include "palmette/aggregate/frame.hpp"
#include "palmette/aggregate/socket.hpp"

namespace palmette::aggregate::testing {

class Proxy {
  public:
    enum class Kind { none, cut, flip, stall };
    struct Fault {
        Kind kind = Kind::none;
        bool to_daemon = false;
        std::uint64_t at = 0;  ///< byte of that direction
    };

    Proxy(std::uint16_t daemon, Fault fault) : listener_(listen_on({"127.0.0.1", 0})), daemon_(daemon), fault_(fault) {}

    std::uint16_t port() const { return port_of(listener_.get()); }
    std::uint64_t passed(bool to_daemon) const { return (to_daemon ? up_ : down_).passed; }
    /// Called with each header towards the member, which is sealed again if it returns true.
    std::function<bool(Header&)> rewrite;

    void turn() {
        int error = 0;
        std::string host;
        if (!member_) {
            member_ = accept_from(listener_.get(), host, error);
            if (!member_) return;
            Detail why;
            up_.to = begin_connect({"127.0.0.1", daemon_}, why);
        }
        if (cut_) return;
        move(member_.get(), up_.to.get(), up_, true);
        if (!cut_) move(up_.to.get(), member_.get(), down_, false);
    }

  private:
    struct Direction {
        Fd to;
        std::string waiting;  ///< received, not yet a whole frame or not yet sent
        std::string ready;
        std::uint64_t passed = 0;
    };

    void cut() {
        cut_ = true;
        member_.reset();
        up_.to.reset();
    }

    void move(int from, int to, Direction& way, bool to_daemon) {
        char bytes[4096];
        const ssize_t got = connect_status(up_.to.get()) == 0 ? receive_some(from, bytes, sizeof bytes) : would_block;
        if (got > 0) way.waiting.append(bytes, static_cast<std::size_t>(got));
        if (!to_daemon && rewrite) {
            rewrite_frames(way);
        } else {
            way.ready += way.waiting;
            way.waiting.clear();
        }
        const bool here = fault_.kind != Kind::none && fault_.to_daemon == to_daemon;
        std::size_t most = way.ready.size();
        if (here && fault_.kind != Kind::flip) most = std::min<std::uint64_t>(most, fault_.at - way.passed);
        if (here && fault_.kind == Kind::flip && fault_.at >= way.passed && fault_.at < way.passed + way.ready.size()) {
            way.ready[fault_.at - way.passed] ^= 0x10;
            fault_.kind = Kind::none;
        }
        if (most > 0) {
            const ssize_t sent = send_some(to, std::string_view(way.ready).substr(0, most), {});
            if (sent > 0) {
                way.passed += static_cast<std::uint64_t>(sent);
                way.ready.erase(0, static_cast<std::size_t>(sent));
            }
            if (sent == stream_ended) return cut();
        }
        if ((here && fault_.kind == Kind::cut && way.passed == fault_.at) ||
            (got == stream_ended && (here || way.ready.empty())))
            cut();
    }

    void rewrite_frames(Direction& way) {
        Header header;
        while (way.waiting.size() >= header_bytes && parse_header(way.waiting.data(), header) == Reason::none) {
            const std::size_t size = header_bytes + header.bytes;
            if (way.waiting.size() < size) return;
            if (rewrite(header)) write_header(header, way.waiting.data());
            way.ready += way.waiting.substr(0, size);
            way.waiting.erase(0, size);
        }
    }

    Fd listener_;
    std::uint16_t daemon_;
    Fault fault_;
    Fd member_;
    Direction up_;
    Direction down_;
    bool cut_ = false;
};

}  // namespace palmette::aggregate::testing
