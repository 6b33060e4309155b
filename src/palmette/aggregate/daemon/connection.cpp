// Daemon: what comes from a member's connection and what goes to it.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "palmette/aggregate/daemon/daemon.hpp"

namespace palmette::aggregate {

void Daemon::serve(Connection& from) {
    if (from.state == Connection::State::closing) {
        // Read until the member closes: a close with unread bytes would destroy the reason on its way.
        std::array<char, 4096> ignored{};
        for (int reads = 0; reads < 16; ++reads) {
            const ssize_t got = receive_some(from.fd.get(), ignored.data(), ignored.size());
            if (got == stream_ended) return lost(from);
            if (got == would_block) break;
        }
        return pump(from);
    }
    for (int frames = 0; frames < settings_.frames_a_turn;) {
        if (from.state != Connection::State::greeting && from.state != Connection::State::member) break;
        const FrameReader::Progress progress = from.reader.advance(from.fd.get());
        if (progress == FrameReader::Progress::waiting) break;
        if (progress == FrameReader::Progress::ended) return lost(from);
        if (progress == FrameReader::Progress::damaged) {
            refuse(from, Reason::damaged, "a member sent a damaged frame");
        } else if (progress == FrameReader::Progress::version) {
            refuse(from, Reason::version, "the daemon speaks another version of the protocol");
        } else if (progress == FrameReader::Progress::header) {
            on_header(from);
        } else {
            ++frames;
            ++metrics_.frames_received;
            metrics_.bytes_received += from.reader.header().bytes;
            on_frame(from);
        }
    }
    if (from.state != Connection::State::dead) pump(from);
}

void Daemon::on_header(Connection& from) {
    const Header& header = from.reader.header();
    char* to = from.reader.control();
    if (from.state == Connection::State::member &&
        (header.group != from.group->identity.number || header.epoch != from.group->identity.epoch))
        return refuse(from, Reason::old_epoch, "a member sent a frame of another group or epoch");
    if (header.type == FrameType::data) {
        if (from.state != Connection::State::member || !from.group->ready)
            return refuse(from, Reason::protocol, "data before the group is ready");
        if (from.group->leaving) return end(*from.group, Reason::left, "another member has left the group");
        Detail why;
        const Reason reason = from.group->window.accept(from.member, header, to, why);
        if (reason != Reason::none) return end(*from.group, reason, why.view());
    }
    from.reader.accept(to);
}

void Daemon::on_frame(Connection& from) {
    const FrameType type = from.reader.header().type;
    if (from.state == Connection::State::greeting) {
        if (type == FrameType::create) return on_create(from);
        if (type == FrameType::join) return on_join(from);
    } else {
        if (type == FrameType::data) return on_data(from);
        if (type == FrameType::leave) return on_leave(from);
        if (type == FrameType::ping) {
            from.owes_pong = true;
            return;
        }
    }
    refuse(from, Reason::protocol, "a frame that has no place here");
}

void Daemon::on_data(Connection& from) {
    const std::shared_ptr<Group> group = from.group;
    const std::uint64_t before = group->window.combined();
    Detail why;
    if (!group->window.arrived(from.member, why)) return end(*group, Reason::mismatch, why.view());
    const std::uint64_t combined = group->window.combined() - before;
    if (combined == 0) return;
    metrics_.chunks += combined;
    if (group->up)
        serve_up(*group);
    else
        pump_all(*group);
}

void Daemon::on_leave(Connection& from) {
    const std::shared_ptr<Group> group = from.group;
    if (group->ready && group->window.drained()) return end(*group, Reason::left, "another member has left the group");
    const bool idle = group->ready && group->window.received(from.member) == group->window.combined() &&
                      !from.sends_result && group->window.results() == group->window.combined();
    if (!idle) return end(*group, Reason::left, "a member left the group in the middle of an operation");
    // Others still get the last results.
    group->leaving = true;
    group->members[from.member] = nullptr;
    from.group.reset();
    close_with(from, Reason::left, "this member has left the group");
}

void Daemon::pump(Connection& to) {
    for (;;) {
        if (!to.writer.idle()) {
            if (!to.writer.advance(to.fd.get())) return lost(to);
            if (!to.writer.idle()) break;
            ++metrics_.frames_sent;
            if (to.sends_result) {
                to.sends_result = false;
                to.group->window.result_sent(to.member);
                if (to.group->leaving && !to.group->ended && to.group->window.drained())
                    return end(*to.group, Reason::left, "another member has left the group");
            }
        }
        if (!begin_next(to)) break;
    }
    const std::uint32_t events = EPOLLIN | (to.writer.idle() ? 0U : static_cast<std::uint32_t>(EPOLLOUT));
    if (events == to.events || to.state == Connection::State::dead) return;
    to.events = events;
    watch(to.fd.get(), events, EPOLL_CTL_MOD);
}

bool Daemon::begin_next(Connection& to) {
    std::array<char, most_control_bytes> bytes{};
    Writer out(bytes.data(), bytes.size());
    Header header;
    if (to.group) {
        header.group = to.group->identity.number;
        header.epoch = to.group->identity.epoch;
    }
    if (to.owes_hello) {
        to.owes_hello = false;
        header.type = FrameType::hello;
        const Limits& limits = settings_.limits;
        Hello{to.nonce,
              machine_fingerprint(),
              limits.slots_per_group,
              limits.datagram_bytes,
              limits.stream_bytes,
              static_cast<std::uint8_t>(limits.sharp_types ? 1 : 0)}
            .write(out);
    } else if (to.state == Connection::State::closing) {
        if (!to.owes_abort) {
            if (!to.shut) shutdown(to.fd.get(), SHUT_WR);
            to.shut = true;
            return false;
        }
        to.owes_abort = false;
        header.type = FrameType::abort;
        Abort{to.why, to.detail.view()}.write(out);
    } else if (to.owes_ready) {
        to.owes_ready = false;
        header.type = FrameType::ready;
        out.put_bytes(view(
            member_proof(to.group->identity.secret, FrameType::ready, to.nonce, to.member_nonce, header, to.member)));
    } else if (to.owes_pong) {
        to.owes_pong = false;
        header.type = FrameType::pong;
        bool at_above = false;
        header.chunk = to.group->window.received(to.member);
        header.count = to.group->missing(header.offset, at_above);
        header.flags = at_above ? above : 0;
    } else {
        const char* payload = nullptr;
        if (to.state != Connection::State::member || !to.group->ready ||
            !to.group->window.next_result(to.member, header, payload))
            return false;
        to.sends_result = true;
        metrics_.bytes_sent += header.bytes;
        to.writer.begin(header, payload);
        return true;
    }
    to.writer.begin_control(header, out.view());
    return true;
}

void Daemon::lost(Connection& from) {
    if (from.state == Connection::State::dead) return;
    const bool in_group = from.state == Connection::State::member;
    from.state = Connection::State::dead;
    dead_.push_back(from.fd.get());
    if (!in_group || from.group->ended) return;
    Detail why;
    why.set("member %u's connection ended", from.member);
    end(*from.group, Reason::member_lost, why.view());
}

void Daemon::close_with(Connection& to, Reason reason, std::string_view detail) {
    if (to.state == Connection::State::dead || to.state == Connection::State::closing) return;
    to.state = Connection::State::closing;
    to.owes_abort = true;
    to.why = reason;
    to.detail.set("%.*s", static_cast<int>(detail.size()), detail.data());
    to.deadline = Clock::now() + std::chrono::milliseconds(settings_.closing_ms);
    pump(to);
}

void Daemon::refuse(Connection& to, Reason reason, const char* detail) {
    if (to.state == Connection::State::member) return end(*to.group, reason, detail);
    ++metrics_.refused[static_cast<std::size_t>(reason)];
    close_with(to, reason, detail);
}

}  // namespace palmette::aggregate
