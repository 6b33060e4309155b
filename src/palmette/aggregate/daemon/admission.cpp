// Daemon: making groups, joining them, and their end.
#include <sys/epoll.h>

#include <algorithm>
#include <new>

#include "palmette/aggregate/daemon/daemon.hpp"

namespace palmette::aggregate {
namespace {

/// Ended groups whose epochs are remembered.
constexpr std::size_t most_past = 1024;

std::int64_t now_s() {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::uint32_t epoll_events(short poll_events) { return static_cast<std::uint32_t>(poll_events); }

}  // namespace

bool Daemon::is_old(const Header& header) const {
    return std::any_of(past_.begin(), past_.end(),
                       [&](const auto& group) { return group.first == header.group && group.second >= header.epoch; });
}

void Daemon::on_create(Connection& from) {
    const Header& header = from.reader.header();
    Create create;
    Grant grant;
    if (!create.read(from.reader.payload())) return refuse(from, Reason::damaged, "CREATE can't be read");
    if (create.fingerprint != machine_fingerprint())
        return refuse(from, Reason::machine, "the member's processor, types or kernels differ from the daemon's");
    if (!grant.read(create.token)) return refuse(from, Reason::authentication, "no token of this site");
    Token token;
    token.text = create.token;
    token.key = token_key(settings_.site_key, create.token);
    if (!same_digest(create.proof, create_proof(token.key, from.nonce, header, create.before_proof)))
        return refuse(from, Reason::authentication, "the token wasn't made with this daemon's key");
    if (grant.expires_s <= now_s()) return refuse(from, Reason::authentication, "the token has expired");
    if (create.levels.count > 1 && !settings_.parent)
        return refuse(from, Reason::no_resource, "there is no daemon above this one");
    if (is_old(header)) return refuse(from, Reason::old_epoch, "a later epoch of this group has been");

    Group::Identity identity{header.group,  header.epoch,
                             grant.uid,     create.shape,
                             create.levels, group_secret(token.key, header.group, header.epoch, create.salt)};
    from.member_nonce = create.nonce;
    const std::uint16_t number = create.levels.at[0].member;
    const auto known = groups_.find(header.group);
    if (known != groups_.end() && known->second->identity.epoch == header.epoch) {
        const std::shared_ptr<Group> group = known->second;
        if (!same_digest(group->identity.secret, identity.secret))
            return refuse(from, Reason::authentication, "another job has a group of this number");
        if (!group->same(identity)) return refuse(from, Reason::mismatch, "the group was made with another shape");
        return enter(from, group, number);
    }
    if (!make_room(from, identity)) return;
    Reason reason = Reason::none;
    Detail why;
    auto reserved = ledger_.reserve(grant, create.shape, create.levels.at[0].members, reason, why);
    if (!reserved) return refuse(from, reason, why.text.data());
    std::shared_ptr<Group> group;
    try {
        group = std::make_shared<Group>(identity, std::move(reserved), settings_.limits.sharp_types);
    } catch (const std::bad_alloc&) {
        return refuse(from, Reason::no_resource, "the daemon is out of memory");
    }
    group->token = std::move(token);
    group->salt = create.salt;
    groups_.emplace(header.group, group);
    ++metrics_.groups;
    enter(from, group, number);
}

bool Daemon::make_room(Connection& from, const Group::Identity& identity) {
    const auto known = groups_.find(identity.number);
    if (known == groups_.end()) return true;
    const std::shared_ptr<Group> group = known->second;
    if (group->identity.uid != identity.uid) {
        refuse(from, Reason::authentication, "another user has a group of this number");
        return false;
    }
    if (group->identity.epoch > identity.epoch) {
        refuse(from, Reason::old_epoch, "a later epoch of this group is there");
        return false;
    }
    end(*group, Reason::old_epoch, "the group is made anew");
    return true;
}

void Daemon::on_join(Connection& from) {
    const Header& header = from.reader.header();
    Join join;
    if (!join.read(from.reader.payload())) return refuse(from, Reason::damaged, "JOIN can't be read");
    if (join.fingerprint != machine_fingerprint())
        return refuse(from, Reason::machine, "the member's processor, types or kernels differ from the daemon's");
    if (is_old(header)) return refuse(from, Reason::old_epoch, "this epoch of the group has ended");
    const auto known = groups_.find(header.group);
    if (known == groups_.end() || header.epoch > known->second->identity.epoch)
        return refuse(from, Reason::unknown_group, "nobody has made this group");
    const std::shared_ptr<Group> group = known->second;
    if (header.epoch != group->identity.epoch)
        return refuse(from, Reason::old_epoch, "a later epoch of this group is there");
    if (!same_digest(join.proof, member_proof(group->identity.secret, FrameType::join, from.nonce, join.nonce, header,
                                              join.member)))
        return refuse(from, Reason::authentication, "wrong secret");
    if (!(join.shape == group->identity.shape))
        return refuse(from, Reason::mismatch, "the group was made with another shape");
    from.member_nonce = join.nonce;
    enter(from, group, join.member);
}

void Daemon::enter(Connection& member, const std::shared_ptr<Group>& group, std::uint16_t number) {
    if (number >= group->members.size()) return refuse(member, Reason::protocol, "the group has fewer members");
    if (group->members[number] != nullptr)
        return refuse(member, Reason::member_taken, "another connection is this member of the group");
    group->members[number] = &member;
    ++group->joined;
    member.group = group;
    member.member = number;
    member.state = Connection::State::member;
    if (!group->complete()) return;
    if (!group->is_inner()) {
        group->ready = true;
        for (Connection* one : group->members) one->owes_ready = true;
        return pump_all(*group);
    }
    group->climb(*settings_.parent, group->token, group->salt, settings_.timeouts);
    if (group->up_fd >= 0) {
        group->up_events = epoll_events(group->up->events());
        ups_.emplace(group->up_fd, group);
        watch(group->up_fd, group->up_events, EPOLL_CTL_ADD);
    }
    serve_up(*group);
}

void Daemon::serve_up(Group& group) {
    if (group.ended) return;
    Link& up = *group.up;
    const std::uint64_t before = group.window.results();
    up.progress();
    if (up.state() == Link::State::failed) {
        Detail why;
        why.set("the daemon above: %.*s: %.*s", static_cast<int>(name_of(up.reason()).size()),
                name_of(up.reason()).data(), static_cast<int>(up.detail().size()), up.detail().data());
        // Members see the cause as the daemon above tells it, and otherwise that it is gone.
        const bool told = up.reason() == Reason::mismatch || up.reason() == Reason::quota ||
                          up.reason() == Reason::no_resource || up.reason() == Reason::stream_lock ||
                          up.reason() == Reason::unsupported || up.reason() == Reason::member_lost ||
                          up.reason() == Reason::left || up.reason() == Reason::late_join;
        return end(group, told ? up.reason() : Reason::parent_lost, why.view());
    }
    const std::uint32_t events = epoll_events(up.events());
    if (events != group.up_events) {
        group.up_events = events;
        watch(group.up_fd, events, EPOLL_CTL_MOD);
    }
    if (up.state() == Link::State::ready && !group.ready) {
        group.ready = true;
        for (Connection* one : group.members) one->owes_ready = true;
        return pump_all(group);
    }
    if (group.window.results() > before) pump_all(group);
}

void Daemon::pump_all(Group& group) {
    for (Connection* member : group.members) {
        if (group.ended) return;
        if (member != nullptr) pump(*member);
    }
}

void Daemon::end(Group& group, Reason reason, std::string_view detail) {
    if (group.ended) return;
    group.ended = true;
    const auto known = groups_.find(group.identity.number);
    const std::shared_ptr<Group> kept = known->second;
    groups_.erase(known);
    ++metrics_.ended[static_cast<std::size_t>(reason)];
    past_.emplace_back(group.identity.number, group.identity.epoch);
    if (past_.size() > most_past) past_.pop_front();
    if (group.up) {
        ups_.erase(group.up_fd);
        if (reason == Reason::left) group.up->leave();
        group.up.reset();
    }
    for (Connection* member : group.members) {
        if (member != nullptr) close_with(*member, reason, detail);
    }
}

}  // namespace palmette::aggregate
