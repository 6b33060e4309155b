#include "palmette/aggregate/daemon/group.hpp"

namespace palmette::aggregate {

Group::Group(const Identity& own, std::unique_ptr<Ledger::Reservation> reserved, bool only_sharp)
    : identity(own),
      members(own.levels.at[0].members),
      reserved_(std::move(reserved)),
      window(own.levels.at[0].members, own.shape, only_sharp, own.levels.count > 1) {
    identity.levels.at[0].member = 0;
}

bool Group::same(const Identity& other) const {
    Levels levels = other.levels;
    levels.at[0].member = 0;
    return identity.uid == other.uid && identity.shape == other.shape && identity.levels == levels;
}

void Group::climb(const Address& parent, const Token& own, const Nonce& shared_salt, const Timeouts& timeouts) {
    Membership membership;
    membership.daemon = parent;
    membership.invitation = {identity.number, identity.epoch, shared_salt, identity.secret};
    membership.levels.count = static_cast<std::uint8_t>(identity.levels.count - 1);
    for (std::size_t i = 1; i < identity.levels.count; ++i) membership.levels.at[i - 1] = identity.levels.at[i];
    membership.shape = identity.shape;
    membership.token = own;
    up = std::make_unique<Link>(std::move(membership), timeouts, *this);
    up->start();
    up_fd = up->fd();
}

std::uint64_t Group::missing(std::uint64_t& first, bool& at_above) const {
    if (!complete()) {
        while (first < members.size() && members[first] != nullptr) ++first;
        return members.size() - joined;
    }
    unsigned local = 0;
    const unsigned number = ready ? window.missing(local) : 0;
    first = local;
    if (number > 0 || !up) return number;
    at_above = true;
    first = up->first_missing();
    return up->missing();
}

bool Group::next(Header& header, const char*& payload) noexcept {
    return window.next_above(header.chunk, header, payload);
}

bool Group::place(const Header& header, char*& payload) noexcept { return window.place_from_above(header, payload); }

void Group::arrived(const Header& header) noexcept { window.arrived_from_above(header); }

}  // namespace palmette::aggregate
