#include "palmette/aggregate/daemon/ledger.hpp"

#include <algorithm>

#include "palmette/aggregate/daemon/window.hpp"

namespace palmette::aggregate {

Ledger::Reservation::Reservation(Ledger& ledger, std::uint32_t uid, const Shape& shape, std::uint64_t bytes)
    : ledger_(ledger), uid_(uid), shape_(shape), bytes_(bytes) {
    for (Usage* usage : {&ledger.total_, &ledger.users_[uid]}) {
        ++usage->groups;
        usage->slots += shape.slots;
        usage->bytes += bytes;
    }
    ++ledger.trees_[shape.tree].groups;
    if (shape.mode == Mode::stream) ++ledger.trees_[shape.tree].streams;
}

Ledger::Reservation::~Reservation() {
    const auto user = ledger_.users_.find(uid_);
    for (Usage* usage : {&ledger_.total_, &user->second}) {
        --usage->groups;
        usage->slots -= shape_.slots;
        usage->bytes -= bytes_;
    }
    if (user->second.groups == 0) ledger_.users_.erase(user);
    --ledger_.trees_[shape_.tree].groups;
    if (shape_.mode == Mode::stream) --ledger_.trees_[shape_.tree].streams;
}

std::uint32_t Ledger::streams() const {
    std::uint32_t number = 0;
    for (const Tree& tree : trees_) number += tree.streams;
    return number;
}

std::unique_ptr<Ledger::Reservation> Ledger::reserve(const Grant& grant, const Shape& shape, unsigned members,
                                                     Reason& reason, Detail& why) {
    const std::uint32_t most_bytes = shape.mode == Mode::stream ? limits_.stream_bytes : limits_.datagram_bytes;
    const std::uint64_t bytes = Window::bytes_of(members, shape);
    reason = Reason::no_resource;
    if (shape.tree >= limits_.trees) {
        why.set("tree %u: there are %u", shape.tree, limits_.trees);
    } else if (shape.slots == 0 || shape.slots > limits_.slots_per_group) {
        why.set("%u slots: a group may have 1 to %u", shape.slots, limits_.slots_per_group);
    } else if (shape.chunk_bytes < 32 || shape.chunk_bytes > most_bytes) {
        why.set("chunks of %u bytes: they may have 32 to %u", shape.chunk_bytes, most_bytes);
    } else if (members > limits_.members) {
        why.set("%u members: a group may have %u", members, limits_.members);
    } else if (trees_[shape.tree].groups >= limits_.groups_per_tree) {
        why.set("tree %u has its %u groups", shape.tree, limits_.groups_per_tree);
    } else if (total_.slots + shape.slots > limits_.slots_total) {
        why.set("%llu of %u slots are taken", static_cast<unsigned long long>(total_.slots), limits_.slots_total);
    } else if (total_.bytes + bytes > limits_.memory_bytes) {
        why.set("%llu of %llu bytes are taken, and the group needs %llu", static_cast<unsigned long long>(total_.bytes),
                static_cast<unsigned long long>(limits_.memory_bytes), static_cast<unsigned long long>(bytes));
    } else {
        reason = Reason::none;
    }
    if (reason != Reason::none) return nullptr;
    const auto known = users_.find(grant.uid);
    const Usage user = known == users_.end() ? Usage{} : known->second;
    const std::uint64_t share = limits_.user_percent;
    reason = Reason::quota;
    if (user.groups >= std::min(grant.groups, limits_.groups_per_user)) {
        why.set("user %u has %u groups already", grant.uid, user.groups);
    } else if ((user.slots + shape.slots) * 100 > limits_.slots_total * share ||
               (user.bytes + bytes) * 100 > limits_.memory_bytes * share) {
        why.set("user %u would have more than %u %% of slots or memory", grant.uid, limits_.user_percent);
    } else if (shape.mode == Mode::stream && limits_.exclusive_stream && trees_[shape.tree].streams > 0) {
        reason = Reason::stream_lock;
        why.set("another group streams over tree %u", shape.tree);
    } else {
        reason = Reason::none;
    }
    if (reason != Reason::none) return nullptr;
    return std::make_unique<Reservation>(*this, grant.uid, shape, bytes);
}

}  // namespace palmette::aggregate
