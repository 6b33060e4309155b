#include "palmette/runtime/state/aggregation.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>

#include "palmette/aggregate/support.hpp"
#include "palmette/base/error.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {
namespace {

using aggregate::Reason;

constexpr std::uint64_t longest_retry = 1 << 20;

/// Daemons that cost so much time before they were given up aren't asked again so soon, by no communicator.
constexpr std::chrono::milliseconds long_wait{500};
constexpr std::chrono::seconds not_asked{60};
std::atomic<std::chrono::steady_clock::time_point> ask_again_at{};  ///< rank 0's of the communicators

/// A window of 256 KB for each member: that of a network of 10 Gbit/s with 200 us of round trip and skew.
constexpr aggregate::Shape usual_shape{aggregate::Mode::datagram, 0, 16, 16384};

/// All ranks are in here when they join, so that none of them comes late; a daemon that was gone may be so still.
aggregate::Timeouts timeouts_for(std::uint32_t epoch) {
    aggregate::Timeouts out;
    out.connect_ms = epoch == 1 ? 5000 : 1000;
    out.join_ms = 2 * out.connect_ms;
    return out;
}

/// What rank 0 tells the others. Its size doesn't depend on the job but for the invitations that follow.
struct Opening {
    std::uint32_t reason = 0;
    std::array<char, aggregate::most_token_bytes> token{};
    std::uint32_t token_bytes = 0;
    aggregate::Digest key{};
    std::array<char, 160> detail{};
};

void set_text(std::array<char, 160>& to, std::string_view text) {
    const std::size_t length = std::min(text.size(), to.size() - 1);
    std::memcpy(to.data(), text.data(), length);
    to[length] = 0;
}

}  // namespace

void Aggregation::leave() {
    for (AggregationChannel& one : channels_) one.client->leave();
    channels_.clear();
}

/// Collective, where the ranks have agreed on this code.
bool Aggregation::conclude(std::int64_t code, std::string_view own_detail) {
    in_service_ = code == 0;
    if (in_service_) return true;
    const std::int32_t finder = rank_in(code);
    std::array<char, 160> text{};
    if (rank_ == finder) set_text(text, own_detail);
    const int error = PMPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, finder, comm_);
    why_ = base::cat(error == MPI_SUCCESS ? text.data() : "the MPI's broadcast has failed", " (rank ", finder, ")");
    return false;
}

void Aggregation::open(const BoundProgram& program, const std::string& token_path) {
    Opening opening;
    std::vector<aggregate::Invitation> invitations(job_.aggregators().size() *
                                                   static_cast<std::size_t>(program.channels));
    ++epoch_;
    const auto fail = [&](Reason reason, std::string_view detail) {
        opening.reason = static_cast<std::uint32_t>(reason);
        set_text(opening.detail, detail);
    };
    if (rank_ == 0 && std::chrono::steady_clock::now() < ask_again_at.load()) {
        fail(Reason::connect, "aggregators didn't answer less than a minute ago");
    } else if (rank_ == 0) {
        try {
            const aggregate::Token token = aggregate::read_token(token_path);
            opening.key = token.key;
            opening.token_bytes = static_cast<std::uint32_t>(std::min(token.text.size(), opening.token.size()));
            std::memcpy(opening.token.data(), token.text.data(), opening.token_bytes);
            if (groups_.empty()) {
                groups_.resize(invitations.size());
                if (!aggregate::fill_random(groups_.data(), groups_.size() * sizeof groups_[0])) {
                    groups_.clear();
                    base::fail("the kernel has no random numbers");
                }
            }
            for (std::size_t i = 0; i < invitations.size(); ++i)
                if (const auto made = aggregate::invite(token, groups_[i], epoch_))
                    invitations[i] = *made;
                else
                    base::fail("the kernel has no random numbers");
        } catch (const std::exception& error) {  // the others wait for what rank 0 has to say
            fail(Reason::authentication, error.what());
        }
    }
    const auto bcast = [&](void* data, std::size_t bytes) {
        return PMPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, 0, comm_) == MPI_SUCCESS;
    };
    if (!bcast(&opening, sizeof opening) ||
        !bcast(invitations.data(), invitations.size() * sizeof(aggregate::Invitation))) {
        reason_ = Reason::protocol;
        detail_ = "the MPI's broadcast has failed";
        return;
    }
    reason_ = static_cast<Reason>(opening.reason);
    detail_ = opening.detail.data();
    if (reason_ != Reason::none) return;

    const topology::Partition& groups = job_.levels()[level_].groups;
    aggregate::Membership membership;
    membership.levels.count = 1;
    membership.levels.at[0] = {
        static_cast<std::uint16_t>(groups.count()),
        static_cast<std::uint16_t>(groups.group_of(job_.position_of(topology::Rank{rank_}).value))};
    membership.shape = usual_shape;
    membership.fits_limits = true;
    membership.token.emplace();
    membership.token->text.assign(opening.token.data(), opening.token_bytes);
    membership.token->key = opening.key;
    for (const auto& [peer, channel] : channels_of(program, job_.size())) {
        const auto which = static_cast<std::size_t>(peer - job_.size());
        try {
            membership.daemon = aggregate::numeric(aggregate::Address::read(job_.aggregators()[which].address));
        } catch (const base::Error& error) {
            reason_ = Reason::connect;
            detail_ = base::cat(job_.aggregators()[which].name, ": ", error.what());
            return;
        }
        membership.invitation =
            invitations[which * static_cast<std::size_t>(program.channels) + static_cast<std::size_t>(channel)];
        channels_.push_back({peer, channel, std::make_unique<aggregate::Client>(membership, timeouts_for(epoch_))});
    }
}

void Aggregation::wait_until_joined() {
    for (AggregationChannel& one : channels_) one.client->start();
    constexpr int longest_wait_ms = 10;
    for (;;) {
        std::vector<pollfd> watched;
        for (AggregationChannel& one : channels_) {
            aggregate::Client& client = *one.client;
            client.progress();
            if (client.failed()) {
                reason_ = client.reason();
                detail_ = base::cat(job_.aggregators()[static_cast<std::size_t>(one.peer - job_.size())].name, ": ",
                                    client.detail());
                return;
            }
            if (!client.ready()) watched.push_back({client.link().fd(), client.link().events(), 0});
        }
        if (watched.empty()) return;
        poll(watched.data(), watched.size(), longest_wait_ms);
        if (has_outstanding()) progress_background();
    }
}

bool Aggregation::join(const BoundProgram& program, const std::string& token_path) {
    leave();
    reason_ = Reason::none;
    const auto begin = std::chrono::steady_clock::now();
    // What one rank finds in the first part the others needn't wait for in the second; and then all are in here.
    std::optional<long long> code;
    for (const bool joins : {false, true}) {
        try {
            joins ? wait_until_joined() : open(program, token_path);
        } catch (const std::bad_alloc&) {
            reason_ = Reason::no_resource;
            detail_ = "this process is out of memory";
        }
        code = smallest(comm_, agreement_code(reason_, rank_));
        if (!code || *code < 0) break;
    }
    if (!code || !conclude(*code, base::cat(aggregate::name_of(reason_), ": ", detail_))) {
        leave();
        const auto now = std::chrono::steady_clock::now();
        if (rank_ == 0 && now - begin > long_wait) ask_again_at.store(now + not_asked);
        return false;
    }
    const bool sharp = std::any_of(channels_.begin(), channels_.end(),
                                   [](const auto& one) { return one.client->link().hello().sharp_types != 0; });
    only_sharp_ = !all_true(comm_, !sharp).value_or(false);
    return true;
}

bool Aggregation::serves(const Operation& operation, const BoundProgram& program, const std::string& token_path) {
    if (!in_service_) {
        if (++calls_without_ < retry_after_) return false;
        calls_without_ = 0;
        retry_after_ = std::min(4 * retry_after_, longest_retry);
        if (!join(program, token_path)) return false;
    }
    const auto known = operation.known();
    if (known &&
        aggregate::supported(aggregate::Collective::allreduce, known->op, known->element, only_sharp_) == Reason::none)
        return true;
    why_ = "unsupported: the aggregators' profile has no such operation on such elements";
    return false;
}

bool Aggregation::succeeded(const AggregationTransport& transport) {
    std::string detail;
    if (const auto& failure = transport.failure())
        detail = base::cat(aggregate::name_of(failure->reason), ": ", failure->detail);
    if (conclude(transport.agreed(), detail)) return true;
    leave();
    return false;
}

}  // namespace palmette::runtime
