#include "aggregator/trial.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <vector>

#include "palmette/aggregate/client/client.hpp"
#include "palmette/base/error.hpp"

namespace palmette::aggregator {
namespace {

using namespace aggregate;

/// What each profile but slingshot gives.
constexpr std::uint16_t slots = 8;

class Members {
  public:
    std::deque<Client> all;

    /// Until it holds for all, or one has failed, which is told; each has its own timeouts.
    bool until(const std::function<bool(const Client&)>& holds) {
        for (;;) {
            int due_ms = 1000;
            std::vector<pollfd> waiting;
            bool reached = true;
            for (Client& client : all) {
                if (client.failed()) {
                    const std::string_view reason = name_of(client.reason());
                    std::printf("failed: %.*s: %s\n", static_cast<int>(reason.size()), reason.data(),
                                client.detail().data());
                    return false;
                }
                reached &= holds(client);
                waiting.push_back({client.link().fd(), client.link().events(), 0});
                if (client.link().due_ms() >= 0) due_ms = std::min(due_ms, client.link().due_ms());
            }
            if (reached) return true;
            poll(waiting.data(), waiting.size(), due_ms);
            for (Client& client : all) client.progress();
        }
    }
};

Invitation new_group(const Token& token) {
    std::uint64_t number = 0;
    const bool random = fill_random(&number, sizeof number);
    const std::optional<Invitation> made = random ? invite(token, number, 1) : std::nullopt;
    if (!made) base::fail("the kernel has no random numbers");
    return *made;
}

}  // namespace

int run_trial(const Trial& trial) {
    const Token token = read_token(trial.token_path);
    Membership membership;
    membership.daemon = trial.daemon;
    membership.invitation = new_group(token);
    membership.levels.count = 1;
    membership.token = token;
    membership.shape.slots = slots;
    membership.shape.chunk_bytes = trial.chunk_bytes;
    Members members;
    for (std::uint16_t member = 0; member < trial.members; ++member) {
        membership.levels.at[0] = {trial.members, member};
        members.all.emplace_back(membership, Timeouts{}).start();
    }
    if (!members.until([](const Client& client) { return client.ready(); })) return 1;

    const std::size_t count = trial.bytes / sizeof(double);
    std::vector<std::vector<double>> inputs, outputs(trial.members, std::vector<double>(count));
    for (std::uint16_t member = 0; member < trial.members; ++member) {
        inputs.emplace_back(count);
        for (std::size_t i = 0; i < count; ++i) inputs.back()[i] = static_cast<double>(i % 1000 + member);
    }
    const auto start = std::chrono::steady_clock::now();
    std::uint32_t number = 0;
    for (std::size_t member = 0; member < trial.members; ++member) {
        const Operation sum = Operation::allreduce(kernels::Operator::sum, kernels::Element::float64,
                                                   inputs[member].data(), outputs[member].data(), count);
        members.all[member].post(sum, number);
    }
    if (!members.until([](const Client& client) { return client.idle(); })) return 1;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const double more = trial.members * (trial.members - 1) / 2.0;
    for (const auto& output : outputs) {
        for (std::size_t i = 0; i < count; ++i) {
            if (output[i] == static_cast<double>(i % 1000) * trial.members + more) continue;
            std::printf("failed: element %zu is %g\n", i, output[i]);
            return 1;
        }
    }
    std::printf("%u members summed %zu doubles in %.1f ms: right\n", trial.members, count, took.count() * 1e3);
    for (Client& client : members.all) client.leave();
    return 0;
}

}  // namespace palmette::aggregator
