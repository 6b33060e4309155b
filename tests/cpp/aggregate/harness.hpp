// Daemons and members in one thread, turn by turn: what happens doesn't depend on the scheduler.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "palmette/aggregate/client/client.hpp"
#include "palmette/aggregate/daemon/daemon.hpp"
#include "palmette/base/text.hpp"

namespace palmette::aggregate::testing {

inline constexpr const char* site_key = "0123456789abcdef0123456789abcdef";

inline Token make_token(std::uint32_t uid = 1000, std::uint32_t groups = 100, std::int64_t expires_s = 1LL << 40) {
    const std::string text = Grant{uid, expires_s, groups}.text();
    return {text, token_key(site_key, text)};
}

/// Short, so that a failure is found quickly, and long enough for a loaded machine.
inline Timeouts quick() { return {.connect_ms = 2000, .ping_ms = 20, .silent_ms = 400, .join_ms = 5000}; }

inline DaemonSettings settings() {
    DaemonSettings made;
    made.site_key = site_key;
    made.timeouts = quick();
    made.closing_ms = 200;
    return made;
}

inline Shape shape(std::uint32_t chunk_bytes = 256, std::uint16_t slots = 4) {
    Shape made;
    made.slots = slots;
    made.chunk_bytes = chunk_bytes;
    return made;
}

/// A daemon's members, or all of a tree's: `daemons` has the root first.
class World {
  public:
    std::vector<std::unique_ptr<Daemon>> daemons;
    std::vector<std::unique_ptr<Client>> clients;
    Token token = make_token();
    std::uint64_t group = 7;
    std::uint32_t epoch = 1;
    Timeouts timeouts = quick();

    Daemon& add(DaemonSettings with = settings()) {
        daemons.push_back(std::make_unique<Daemon>(std::move(with)));
        return *daemons.back();
    }

    Invitation invitation() const { return *invite(token, group, epoch); }

    Membership membership(std::uint16_t port, std::uint16_t member, std::uint16_t members, const Shape& of,
                          const Invitation& by) const {
        Membership made;
        made.daemon = {"127.0.0.1", port};
        made.invitation = by;
        made.levels.count = 1;
        made.levels.at[0] = {members, member};
        made.shape = of;
        made.token = token;
        return made;
    }

    Client& join(Membership with) {
        clients.push_back(std::make_unique<Client>(std::move(with), timeouts));
        clients.back()->start();
        return *clients.back();
    }

    /// All members of a group at the first daemon; each could make it, so that none has to wait.
    void join_all(std::uint16_t members, const Shape& of = shape()) {
        const Invitation by = invitation();
        for (std::uint16_t member = 0; member < members; ++member)
            join(membership(daemons[0]->port(), member, members, of, by));
        ASSERT_TRUE(until([this] { return all([](const Client& client) { return client.ready(); }); })) << reasons();
    }

    void turn() {
        for (const auto& daemon : daemons) daemon->turn(0);
        for (const auto& client : clients) client->progress();
    }

    bool all(const std::function<bool(const Client&)>& holds) const {
        for (const auto& client : clients)
            if (!holds(*client)) return false;
        return true;
    }

    /// False after `most`, which only a fault reaches.
    bool until(const std::function<bool()>& holds, std::chrono::milliseconds most = std::chrono::seconds(20)) {
        const auto limit = std::chrono::steady_clock::now() + most;
        while (!holds()) {
            if (std::chrono::steady_clock::now() > limit) return false;
            turn();
        }
        return true;
    }
    bool until_idle() {
        return until([this] { return all([](const Client& client) { return client.idle() || client.failed(); }); });
    }
    bool until_failed() {
        return until([this] { return all([](const Client& client) { return client.failed(); }); });
    }

    std::string reasons() const {
        std::string text;
        for (const auto& client : clients) text += base::cat(name_of(client->reason()), ": ", client->detail(), "; ");
        return text;
    }
};

inline std::vector<char> random_bytes(std::size_t size, std::mt19937& random) {
    std::vector<char> bytes(size);
    for (char& one : bytes) one = static_cast<char>(random());
    return bytes;
}

/// `members` contributions combined in their order by the host's loops.
inline std::vector<char> combined(kernels::Operator op, kernels::Element element,
                                  const std::vector<std::vector<char>>& inputs, std::size_t count) {
    std::vector<char> sum = inputs[0];
    const kernels::Kernel kernel = kernels::kernel_for(op, element);
    for (std::size_t member = 1; member < inputs.size(); ++member)
        kernel(sum.data(), inputs[member].data(), sum.data(), count);
    return sum;
}

/// Whether the data of all elements is the same; padding isn't looked at.
inline bool same_data(kernels::Element element, const char* one, const char* other, std::size_t count) {
    const kernels::ElementBytes bytes = kernels::bytes_of(element);
    std::vector<char> mask(bytes.extent, 1);
    // What a kernel stores into zeros but not into ones, or the other way round, is data.
    const kernels::Operator op = kernels::kernel_for(kernels::Operator::max, element)      ? kernels::Operator::max
                                 : kernels::kernel_for(kernels::Operator::minloc, element) ? kernels::Operator::minloc
                                 : kernels::kernel_for(kernels::Operator::sum, element)    ? kernels::Operator::sum
                                                                                           : kernels::Operator::band;
    if (const kernels::Kernel kernel = kernels::kernel_for(op, element)) {
        const std::vector<char> zeros(bytes.extent, 0);
        std::vector<char> low(bytes.extent, 0);
        std::vector<char> high(bytes.extent, 0x55);
        kernel(zeros.data(), zeros.data(), low.data(), 1);
        kernel(zeros.data(), zeros.data(), high.data(), 1);
        for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = low[i] == high[i] ? 1 : 0;
    }
    for (std::size_t i = 0; i < count * bytes.extent; ++i)
        if (mask[i % bytes.extent] != 0 && one[i] != other[i]) return false;
    return true;
}

}  // namespace palmette::aggregate::testing
