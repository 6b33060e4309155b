#include "palmette/aggregate/kept/peers.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "palmette/aggregate/bytes.hpp"
#include "palmette/aggregate/kept/courier.hpp"

namespace palmette::aggregate::kept {
namespace {

// Kinds of datagrams besides those of words.
constexpr std::uint8_t probe = kinds_of_words, welcome = probe + 1;
constexpr std::size_t proof_bytes = 16;
/// What has no answer is sent again after so long.
constexpr std::chrono::milliseconds again{50};

using Kind = Word::Kind;

sockaddr_in6 address_of(const in6_addr& host, std::uint16_t port) {
    sockaddr_in6 out{};
    out.sin6_family = AF_INET6;
    out.sin6_port = htons(port);
    out.sin6_addr = host;
    return out;
}

std::string_view proof_of(const Digest& digest) { return view(digest).substr(0, proof_bytes); }

}  // namespace

Peers::Peers(std::uint32_t member, std::uint32_t members, const Opening& opening)
    : member_(member), members_(members), opening_(opening) {
    if (member != 0) return;
    arbiter_.emplace(members);
    members_at_.resize(members);
}

std::shared_ptr<Peers> Peers::open(std::uint32_t members, Opening& opening, std::string& why) {
    if (!fill_random(&opening.group, sizeof opening.group) || !fill_random(opening.key.data(), opening.key.size())) {
        why = "the kernel has no random numbers";
        return nullptr;
    }
    opening.address_count =
        static_cast<std::uint16_t>(own_addresses(opening.addresses.data(), Opening::most_addresses));
    std::shared_ptr<Peers> made(new Peers(0, members, opening));
    if (!Courier::instance().add(made, why)) return nullptr;
    opening.port = Courier::instance().port();
    return made;
}

std::shared_ptr<Peers> Peers::join(std::uint32_t member, std::uint32_t members, const Opening& opening,
                                   std::string& why) {
    std::shared_ptr<Peers> made(new Peers(member, members, opening));
    if (!Courier::instance().add(made, why)) return nullptr;
    return made;
}

void Peers::close() { Courier::instance().remove(*this); }

std::string Peers::packed(std::uint32_t to, std::uint8_t kind, const Word& word) const {
    std::string out(64 + word.data.size() + proof_bytes, '\0');
    Writer writer(out.data(), out.size());
    writer.put(opening_.group);
    writer.put(to);
    writer.put(kind);
    writer.put(member_);
    writer.put(word.operation);
    writer.put(static_cast<std::uint32_t>(word.data.size()));
    writer.put_bytes(word.data);
    const Digest proof = hmac(view(opening_.key), writer.view());
    writer.put_bytes(proof_of(proof));
    out.resize(writer.size());
    return out;
}

bool Peers::unpack(std::string_view bytes, Datagram& out) const {
    if (bytes.size() < proof_bytes) return false;
    const std::string_view said = bytes.substr(0, bytes.size() - proof_bytes);
    const Digest expected = hmac(view(opening_.key), said);
    Digest shown = expected;  // beyond the proof nothing is compared
    std::copy_n(bytes.end() - proof_bytes, proof_bytes, shown.begin());
    if (!same_digest(shown, expected)) return false;
    Reader reader(said.data(), said.size());
    reader.get<std::uint64_t>();
    if (reader.get<std::uint32_t>() != member_) return false;
    out.kind = reader.get<std::uint8_t>();
    out.member = reader.get<std::uint32_t>();
    out.word.operation = reader.get<std::uint64_t>();
    out.word.data = reader.get_bytes(reader.get<std::uint32_t>());
    if (out.kind < kinds_of_words) out.word.kind = static_cast<Kind>(out.kind);
    return reader.complete() && out.kind <= welcome && out.member < members_;
}

void Peers::receive(std::string_view bytes, const sockaddr_in6& from) {
    Datagram got;
    if (!unpack(bytes, got)) return;
    const std::lock_guard lock(mutex_);
    if (got.kind == probe && arbiter_) {
        sockaddr_in6& at = members_at_[got.member];
        if (at.sin6_family == 0) ++met_;
        at = from;
        Courier::instance().send(from, packed(got.member, welcome, {}));
    } else if (got.kind == welcome && got.member == 0) {
        arbiter_at_ = from;
        welcome_ = true;
    } else if (got.kind < kinds_of_words) {
        const Kind kind = got.word.kind;
        const bool to_arbiter = kind != Kind::question && kind != Kind::result && kind != Kind::hosts;
        if (to_arbiter && arbiter_)
            hear_as_arbiter(got.member, got.word);
        else if (!to_arbiter && got.member == 0)
            hear_as_member(got.word);
    }
}

void Peers::send_to_arbiter(const Word& word) {
    if (arbiter_)
        hear_as_arbiter(0, word);
    else
        Courier::instance().send(arbiter_at_, packed(0, static_cast<std::uint8_t>(word.kind), word));
}

void Peers::hear_as_arbiter(std::uint32_t member, const Word& word) {
    if (word.kind == Kind::ask && failure_.reason == Reason::none && !word.data.empty())
        failure_ = {static_cast<Reason>(word.data.front()), word.data.substr(1), member};
    std::vector<Arbiter::Outgoing> out;
    arbiter_->hear(member, word, out);
    if (word.kind == Kind::has && !out.empty()) ++given_;
    deliver(out);
}

void Peers::deliver(std::vector<Arbiter::Outgoing>& out) {
    for (const auto& [member, word] : out)
        if (member != 0)
            Courier::instance().send(members_at_[member], packed(member, static_cast<std::uint8_t>(word.kind), word));
    for (const auto& [member, word] : out)
        if (member == 0) hear_as_member(word);
}

void Peers::hear_as_member(const Word& word) {
    if (word.kind == Kind::question) {
        if (const auto answer = keeper_.answer(word.operation)) send_to_arbiter(*answer);
    } else if (keeper_.contributed() && word.operation == keeper_.held() + 1) {
        decided_ = word;
    }
}

bool Peers::meet() {
    const std::lock_guard lock(mutex_);
    if (arbiter_) return met_ == members_;
    if (welcome_) return true;
    if (const Clock::time_point now = Clock::now(); now - asked_ > again) {
        asked_ = now;
        for (std::size_t i = 0; i < opening_.address_count; ++i)
            Courier::instance().send(address_of(opening_.addresses[i], opening_.port), packed(0, probe, {}));
    }
    return false;
}

bool Peers::contribute() {
    const std::lock_guard lock(mutex_);
    decided_.reset();
    asked_ = {};
    return keeper_.contribute();
}

bool Peers::keep() {
    const std::lock_guard lock(mutex_);
    return keeper_.keep(result_);
}

void Peers::freeze(Reason reason, std::string_view detail) {
    const std::lock_guard lock(mutex_);
    keeper_.freeze();
    if (failure_.reason == Reason::none) failure_ = {reason, std::string(detail), member_};
}

Peers::Failure Peers::failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
}

std::uint64_t Peers::by_hosts() const {
    const std::lock_guard lock(mutex_);
    return by_hosts_;
}

std::uint64_t Peers::given() const {
    const std::lock_guard lock(mutex_);
    return given_;
}

bool Peers::frozen() const {
    const std::lock_guard lock(mutex_);
    return keeper_.frozen();
}

Peers::Verdict Peers::verdict() {
    const std::lock_guard lock(mutex_);
    if (!decided_) {
        if (const Clock::time_point now = Clock::now(); now - asked_ > again) {
            asked_ = now;
            // With why, for the report.
            send_to_arbiter(
                {Kind::ask, keeper_.held() + 1, std::string(1, static_cast<char>(failure_.reason)) + failure_.detail});
        }
        if (!decided_) return Verdict::none;
    }
    if (decided_->kind == Kind::hosts) return Verdict::hosts;
    result_ = decided_->data;
    keeper_.settle(result_);
    return Verdict::result;
}

void Peers::settle(std::string_view result) {
    const std::lock_guard lock(mutex_);
    keeper_.settle(result);
    ++by_hosts_;
}

}  // namespace palmette::aggregate::kept
