#include "palmette/runtime/network/daemon_groups.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>

#include "palmette/aggregate/support.hpp"
#include "palmette/base/error.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {
namespace {

using aggregate::Reason;

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

    void fail(Reason why, std::string_view text) {
        reason = static_cast<std::uint32_t>(why);
        const std::size_t length = std::min(text.size(), detail.size() - 1);
        std::memcpy(detail.data(), text.data(), length);
        detail[length] = 0;
    }
};

}  // namespace

void DaemonGroups::leave() {
    if (joining_since_ && rank_ == 0 && Clock::now() - *joining_since_ > long_wait)
        ask_again_at.store(Clock::now() + not_asked);
    joining_since_.reset();
    for (execute::AggregationChannel& one : channels) one.service->leave();
    channels.clear();
    clients_.clear();
}

aggregate::Problem DaemonGroups::pass(std::size_t stage, const execute::BoundProgram& program) {
    if (stage == 0) return open(program);
    if (stage == 1) {
        joining_since_ = Clock::now();
        return wait_until_joined();
    }
    joining_since_.reset();
    const bool sharp = std::any_of(clients_.begin(), clients_.end(),
                                   [](const auto& one) { return one->link().hello().sharp_types != 0; });
    only_sharp_ = !all_true(comm_, !sharp).value_or(false);
    return {};
}

aggregate::Problem DaemonGroups::open(const execute::BoundProgram& program) {
    Opening opening;
    std::vector<aggregate::Invitation> invitations(job_.aggregators().size() *
                                                   static_cast<std::size_t>(program.channels));
    ++epoch_;
    if (rank_ == 0 && Clock::now() < ask_again_at.load()) {
        opening.fail(Reason::connect, "aggregators didn't answer less than a minute ago");
    } else if (rank_ == 0) {
        try {
            const aggregate::Token token = aggregate::read_token(token_path_);
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
            opening.fail(Reason::authentication, error.what());
        }
    }
    const auto bcast = [&](void* data, std::size_t bytes) {
        return PMPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, 0, comm_) == MPI_SUCCESS;
    };
    if (!bcast(&opening, sizeof opening) ||
        !bcast(invitations.data(), invitations.size() * sizeof(aggregate::Invitation)))
        return {Reason::protocol, "the MPI's broadcast has failed"};
    if (const auto reason = static_cast<Reason>(opening.reason); reason != Reason::none)
        return {reason, opening.detail.data()};

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
    for (const auto& [peer, channel] : execute::channels_of(program, job_.size())) {
        const auto which = static_cast<std::size_t>(peer - job_.size());
        try {
            membership.daemon = aggregate::numeric(aggregate::Address::read(job_.aggregators()[which].address));
        } catch (const base::Error& error) {
            return {Reason::connect, base::cat(job_.aggregators()[which].name, ": ", error.what())};
        }
        membership.invitation =
            invitations[which * static_cast<std::size_t>(program.channels) + static_cast<std::size_t>(channel)];
        auto client = std::make_unique<aggregate::Client>(membership, timeouts_for(epoch_));
        clients_.push_back(client.get());
        channels.push_back({peer, channel, std::move(client)});
    }
    return {};
}

aggregate::Problem DaemonGroups::wait_until_joined() {
    for (aggregate::Client* client : clients_) client->start();
    constexpr int longest_wait_ms = 10;
    for (;;) {
        std::vector<pollfd> watched;
        for (const execute::AggregationChannel& one : channels) {
            aggregate::Service& service = *one.service;
            service.progress();
            if (service.failed())
                return {service.reason(),
                        base::cat(job_.aggregators()[static_cast<std::size_t>(one.peer - job_.size())].name, ": ",
                                  service.detail())};
            const aggregate::Service::Watch watch = service.watch();
            if (!service.ready()) watched.push_back({watch.fd, watch.events, 0});
        }
        if (watched.empty()) return {};
        poll(watched.data(), watched.size(), longest_wait_ms);
        if (has_outstanding()) progress_background();
    }
}

bool DaemonGroups::combine(kernels::Operator op, kernels::Element element) const {
    return aggregate::supported(aggregate::Collective::allreduce, op, element, only_sharp_) == Reason::none;
}

}  // namespace palmette::runtime
